import { describe, expect, test } from 'vitest';
import {
  bulkBody,
  firstInData,
  inData,
  NO_RESULTS_YET,
  recordInData,
  resendSummary,
  wholeBody,
} from '../../src/schemas/envelope.ts';

describe('inData', () => {
  const unwrap = inData('tracker');

  test('data.tracker → the tracker', () => {
    expect(unwrap({ data: { tracker: { trackerId: 't' } } })).toEqual({ payload: { trackerId: 't' } });
  });

  test('the bare form → data itself', () => {
    expect(unwrap({ data: { trackerId: 't' } })).toEqual({ payload: { trackerId: 't' } });
  });

  test('data that is an array → the array', () => {
    expect(unwrap({ data: [1, 2] })).toEqual({ payload: [1, 2] });
  });

  test('a named field that is null → null, not the bare form', () => {
    expect(unwrap({ data: { tracker: null } })).toEqual({ payload: null });
  });

  test.each([null, undefined, {}, [], 'text', 5, { errors: [] }])('%j → a mismatch', (body) => {
    expect(unwrap(body)).toEqual({ mismatch: 'an object with `data`' });
  });

  test('a field inherited from the prototype → not taken for data', () => {
    expect(unwrap(Object.create({ data: {} }))).toEqual({ mismatch: 'an object with `data`' });
  });
});

describe('firstInData', () => {
  const unwrap = firstInData('trackings', ['shipment', 'events']);

  test('data.trackings → the first one', () => {
    expect(unwrap({ data: { trackings: [{ events: [] }, { events: [1] }] } })).toEqual({
      payload: { events: [] },
    });
  });

  test('an array as data → the first one', () => {
    expect(unwrap({ data: [{ events: [] }] })).toEqual({ payload: { events: [] } });
  });

  test('the bare form → data itself', () => {
    expect(unwrap({ data: { shipment: {} } })).toEqual({ payload: { shipment: {} } });
  });

  test.each([{ data: { trackings: [] } }, { data: [] }])('%j → no results yet', (body) => {
    expect(unwrap(body)).toEqual({ payload: NO_RESULTS_YET });
  });

  test.each([{ data: {} }, { data: { tracking: { events: [] } } }])(
    'an object with none of the fields of a result (%j) → a mismatch',
    (body) => {
      expect(unwrap(body)).toEqual({ mismatch: '`data.trackings`, or `data` with `shipment` or `events`' });
    },
  );

  test.each([null, {}, [], 'text'])('%j → a mismatch', (body) => {
    expect(unwrap(body)).toEqual({ mismatch: 'an object with `data`' });
  });
});

describe('wholeBody', () => {
  test.each([null, [], { data: 1 }])('%j → the body as it is', (body) => {
    expect(wholeBody(body)).toEqual({ payload: body });
  });
});

describe('bulkBody', () => {
  test.each([{ status: 'error' }, { data: [] }])('%j → the body as it is', (body) => {
    expect(bulkBody(body)).toEqual({ payload: body });
  });

  test.each([null, [], {}, { status: 5, data: {} }])('%j → a mismatch', (body) => {
    expect(bulkBody(body)).toEqual({ mismatch: 'an object with `status` or a list in `data`' });
  });
});

describe('recordInData', () => {
  const unwrap = recordInData('tracker', 'trackerId');

  test.each([{ data: { tracker: { trackerId: 't' } } }, { data: { trackerId: 't' } }, { trackerId: 't' }])(
    '%j → the tracker',
    (body) => {
      expect(unwrap(body)).toEqual({ payload: { trackerId: 't' } });
    },
  );

  test('a body with an id beside null as data → null', () => {
    expect(unwrap({ data: null, trackerId: 't' })).toEqual({ payload: null });
  });

  test.each([null, [], 'text', {}, { courierCode: 'us-post' }, { errors: [] }])(
    'a body of another kind (%j) → a mismatch',
    (body) => {
      expect(unwrap(body)).toEqual({ mismatch: 'an object with `data`' });
    },
  );
});

describe('resendSummary', () => {
  test('data.summary → the summary', () => {
    expect(resendSummary({ data: { summary: { totalResent: 2 } } })).toEqual({ payload: { totalResent: 2 } });
  });

  test.each([{ data: {} }, { data: null }, { data: [] }, { data: 'ok' }, { data: { summary: null } }])(
    'no summary (%j) → an empty one',
    (body) => {
      expect(resendSummary(body)).toEqual({ payload: {} });
    },
  );

  test.each([null, undefined, {}, [], 'Created', { data: { summary: 'done' } }])(
    '%j → an empty one',
    (body) => {
      expect(resendSummary(body)).toEqual({ payload: {} });
    },
  );
});

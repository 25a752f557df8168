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

const TRACKER = { trackerId: 't' };
const list = inData('trackers');
const record = recordInData('tracker', 'trackerId');
const first = firstInData('trackings', ['shipment', 'events']);

describe('bodies with a payload', () => {
  test.each([
    ['inData, the named field', list, { data: { trackers: [1] } }, [1]],
    ['inData, the bare form', list, { data: [1, 2] }, [1, 2]],
    ['inData, an object of another kind', list, { data: TRACKER }, TRACKER],
    ['inData, a named field that is null', list, { data: { trackers: null } }, null],
    ['recordInData, the named field', record, { data: { tracker: TRACKER } }, TRACKER],
    ['recordInData, the bare form', record, { data: TRACKER }, TRACKER],
    ['recordInData, the record as the whole body', record, TRACKER, TRACKER],
    ['recordInData, an id beside null as data', record, { data: null, trackerId: 't' }, null],
    ['firstInData, the named field', first, { data: { trackings: [{ events: [] }, 1] } }, { events: [] }],
    ['firstInData, an array', first, { data: [{ events: [] }] }, { events: [] }],
    ['firstInData, the bare form', first, { data: { shipment: {} } }, { shipment: {} }],
    ['firstInData, an empty list', first, { data: { trackings: [] } }, NO_RESULTS_YET],
    ['firstInData, an empty array', first, { data: [] }, NO_RESULTS_YET],
    ['wholeBody, null', wholeBody, null, null],
    ['wholeBody, an object', wholeBody, { data: 1 }, { data: 1 }],
    ['bulkBody, a status', bulkBody, { status: 'error' }, { status: 'error' }],
    ['bulkBody, a list', bulkBody, { data: [] }, { data: [] }],
    [
      'resendSummary, a summary',
      resendSummary,
      { data: { summary: { totalResent: 2 } } },
      { totalResent: 2 },
    ],
  ])('%s → the payload', (_name, unwrap, body, payload) => {
    expect(unwrap(body)).toEqual({ payload });
  });

  test.each([
    ...[null, undefined, {}, [], 'Created', { data: null }, { data: [] }],
    ...[{ data: 'ok' }, { data: {} }, { data: { summary: null } }, { data: { summary: 'done' } }],
  ])('a resend without a summary (%j) → an empty one', (body) => {
    expect(resendSummary(body)).toEqual({ payload: {} });
  });
});

describe('bodies of another kind', () => {
  test.each([null, undefined, {}, [], 'text', 5, { errors: [] }, Object.create({ data: {} })])(
    '%j without `data` of its own → a mismatch',
    (body) => {
      for (const unwrap of [list, record, first])
        expect(unwrap(body)).toEqual({ mismatch: 'an object with `data`' });
    },
  );

  test.each([{ data: {} }, { data: { tracking: { events: [] } } }])(
    'an object with none of the fields of a result (%j) → a mismatch',
    (body) => {
      expect(first(body)).toEqual({ mismatch: '`data.trackings`, or `data` with `shipment` or `events`' });
    },
  );

  test.each([null, [], {}, { status: 5, data: {} }])('bulkBody, %j → a mismatch', (body) => {
    expect(bulkBody(body)).toEqual({ mismatch: 'an object with `status` or a list in `data`' });
  });
});

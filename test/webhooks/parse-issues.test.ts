import { describe, expect, test } from 'vitest';
import { parseWebhook } from '../../src/webhooks/index.ts';
import { payload, proofOfDelivery, tracking } from './support.ts';

describe('fields that nothing depends on', () => {
  test.each<[string, Record<string, unknown>, string]>([
    [
      'a shipment date of another kind',
      { shipment: { delivery: { courierEstimatedDeliveryDate: '2026-03-04' } } },
      'Expected `shipment.delivery.courierEstimatedDeliveryDate` to be an object, got a string of 10 characters',
    ],
    [
      'a shipment that is text',
      { shipment: 'lost' },
      'Expected `shipment` to be an object, got a string of 4 characters',
    ],
    [
      'statistics that are a list',
      { statistics: [] },
      'Expected `statistics` to be an object, got an array of 0',
    ],
    [
      'a tracker field of another kind',
      { tracker: { trackerId: 't1', createdAt: 5 } },
      'Expected `tracker.createdAt` to be a string, got a number',
    ],
    [
      'metadata that is text',
      { metadata: 'x' },
      'Expected `metadata` to be an object, got a string of 1 character',
    ],
    [
      'a message id that is a number',
      { metadata: { messageId: 5, topic: 'tracking/events' } },
      'Expected `metadata.messageId` to be a string, got a number',
    ],
    [
      'an event order that is text',
      { events: [{ eventId: 'e0' }, { eventId: 'e1', order: '3' }] },
      'Expected `events[1].order` to be a number, got a string of 1 character',
    ],
  ])('%s → delivered as it came, and told', (_title, fields, message) => {
    const item = { ...tracking('t1', 'e1'), ...fields };
    const { messages, rejected, mismatched } = parseWebhook(payload(item));
    expect(messages).toEqual([{ kind: 'events', ...item }]);
    expect(rejected).toEqual([]);
    expect(mismatched).toMatchObject([{ index: 0, issues: [{ message }] }]);
  });

  test('a proof of delivery with content of another kind → delivered as it came, and told', () => {
    const item = { ...proofOfDelivery('t1'), data: { status: 5, content: [] } };
    const { messages, rejected, mismatched } = parseWebhook(payload(item));
    expect(messages).toEqual([{ kind: 'proofOfDelivery', ...item }]);
    expect(rejected).toEqual([]);
    expect(mismatched).toMatchObject([
      { index: 0, issues: [{ path: ['data', 'status'] }, { path: ['data', 'content'] }] },
    ]);
  });

  test('an unknown topic with metadata of another kind → delivered as it came, and told', () => {
    const item = { metadata: { topic: 'tracking/weather', generatedAt: 5 } };
    const { messages, mismatched } = parseWebhook(payload(item));
    expect(messages).toEqual([{ kind: 'other', ...item }]);
    expect(mismatched).toMatchObject([{ issues: [{ path: ['metadata', 'generatedAt'] }] }]);
  });

  test('a `kind` of the service beside a field of another kind → still ours', () => {
    const item = { ...tracking('t1', 'e1'), shipment: 5, kind: 'other' };
    expect(parseWebhook(payload(item)).messages).toMatchObject([{ kind: 'events', shipment: 5 }]);
  });

  test.each<[string, Record<string, unknown>]>([
    ['a topic that is a number', { metadata: { topic: 5 } }],
    ['a tracker id that is a number', { tracker: { trackerId: 5 } }],
    ['an event id that is a number', { events: [{ eventId: 5 }] }],
  ])('%s, which the name of the event depends on → rejected', (_title, fields) => {
    const { messages, rejected } = parseWebhook(payload({ ...tracking('t1', 'e1'), ...fields }));
    expect(messages).toEqual([]);
    expect(rejected).toHaveLength(1);
  });

  test('a message id of a proof of delivery that is a number → kept as it came', () => {
    const metadata = { topic: 'tracking/pod', messageId: 5 };
    const { messages, mismatched } = parseWebhook(payload({ ...proofOfDelivery('t1'), metadata }));
    expect(messages).toMatchObject([{ metadata }]);
    expect(mismatched).toHaveLength(1);
  });
});

describe('more broken than worth telling', () => {
  test('1,000 broken events → 20 issues, and the good event is delivered', () => {
    const broken = Array.from({ length: 1_000 }, () => 0);
    const { messages, rejected } = parseWebhook({
      trackerId: 't1',
      events: [...broken, { eventId: 'e1' }],
    });
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }] }]);
    expect(rejected[0]?.issues).toHaveLength(20);
  });

  test('1,000 events with a field of another kind → all delivered, 20 issues are told', () => {
    const events = Array.from({ length: 1_000 }, (_, index) => ({ eventId: `e${index}`, order: 'x' }));
    const { messages, mismatched } = parseWebhook({ trackerId: 't1', events });
    expect(messages).toMatchObject([{ events }]);
    expect(mismatched[0]?.issues).toHaveLength(20);
  });

  test('1,000 broken items → 100 of them, and the good item is delivered', () => {
    const broken = Array.from({ length: 1_000 }, () => 0);
    const { messages, rejected } = parseWebhook(payload(...broken, tracking('t1', 'e1')));
    expect(messages).toHaveLength(1);
    expect(rejected).toHaveLength(100);
  });

  test('1,001 good tracking numbers of a shipment → delivered as they came, no issue', () => {
    const trackingNumbers = Array.from({ length: 1_001 }, (_, index) => ({ tn: `LA${index}` }));
    const item = { ...tracking('t1', 'e1'), shipment: { trackingNumbers } };
    const { messages, mismatched } = parseWebhook(payload(item));
    expect(messages).toEqual([{ kind: 'events', ...item }]);
    expect(mismatched).toEqual([]);
  });

  test('1,000,000 broken tracking numbers of a shipment → delivered as they came, with one issue', () => {
    const trackingNumbers = Array.from({ length: 1_000_000 }, () => 0);
    const item = { ...tracking('t1', 'e1'), shipment: { trackingNumbers } };
    const { messages, mismatched } = parseWebhook(payload(item));
    expect(messages).toHaveLength(1);
    expect(mismatched[0]?.issues).toMatchObject([{ code: 'too_big', path: ['shipment', 'trackingNumbers'] }]);
  });
});

describe('bad items', () => {
  test('one broken item among good ones → the good ones are delivered, the bad one named by its index', () => {
    const { messages, rejected } = parseWebhook(
      payload(tracking('t1', 'e1'), { events: [] }, tracking('t3', 'e3')),
    );
    expect(messages).toMatchObject([{ tracker: { trackerId: 't1' } }, { tracker: { trackerId: 't3' } }]);
    expect(rejected).toMatchObject([{ index: 1, issues: [{ path: ['tracker'] }] }]);
  });

  test('one broken event among good ones → the good ones are delivered, the bad one named by its path', () => {
    const { messages, rejected } = parseWebhook(payload(tracking('t1', 'e1', { eventId: 5 }, 'e3')));
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }, { eventId: 'e3' }] }]);
    expect(rejected).toEqual([
      {
        index: 0,
        issues: [
          {
            path: ['events', 1, 'eventId'],
            code: 'invalid_type',
            message: 'Expected `events[1].eventId` to be a string, got a number',
          },
        ],
      },
    ]);
  });

  test('only broken events → rejected and not delivered', () => {
    const { messages, rejected } = parseWebhook(payload(tracking('t1', { eventId: 5 })));
    expect(messages).toEqual([]);
    expect(rejected).toMatchObject([{ index: 0 }]);
  });

  test('broken event and broken tracker → rejected and not delivered', () => {
    const item = { ...tracking('t1', 'e1', { eventId: 5 }), tracker: {} };
    expect(parseWebhook(payload(item)).messages).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['text', 'tracking'],
    ['a number', 5],
    ['an array', []],
    ['no tracker', { events: [] }],
    ['a tracker without id', { tracker: {}, events: [] }],
    ['`trackerId` that is a number', { trackerId: 5, events: [] }],
    ['no `events`', { trackerId: 't1' }],
    ['`events` that is null', { trackerId: 't1', events: null }],
    ['`events` that is an object', { trackerId: 't1', events: {} }],
    ['an event that is null', { trackerId: 't1', events: [null] }],
    ['a proof of delivery without data', { ...proofOfDelivery('t1'), data: null }],
  ])('item that is or has %s → rejected', (_title, item) => {
    const { messages, rejected } = parseWebhook(payload(item));
    expect(messages).toEqual([]);
    expect(rejected).toMatchObject([
      { index: 0, issues: [{ message: expect.stringMatching(/^Expected `/) }] },
    ]);
  });

  test('an event that is null → named by its path', () => {
    const { rejected } = parseWebhook({ trackerId: 't1', events: [null] });
    expect(rejected).toMatchObject([
      { issues: [{ path: ['events', 0], message: 'Expected `events[0]` to be an object, got null' }] },
    ]);
  });

  test('`trackings` that is no array → rejected as a whole', () => {
    expect(parseWebhook({ trackings: {} }).rejected).toMatchObject([
      { index: 0, issues: [{ path: [], message: 'Expected `trackings` to be an array, got an object' }] },
    ]);
  });
});

import { describe, expect, test } from 'vitest';
import { parseWebhook } from '../../src/webhooks/index.ts';
import { payload, proofOfDelivery, tracking } from './support.ts';

const good = tracking('t1', 'e1');
const proof = proofOfDelivery('t1');

describe('fields that no key depends on', () => {
  test.each<[string, object, string, string[]]>([
    [
      'a shipment date of another kind',
      { ...good, shipment: { delivery: { courierEstimatedDeliveryDate: '2026-03-04' } } },
      'events',
      ['`shipment.delivery.courierEstimatedDeliveryDate` to be an object, got a string of 10 characters'],
    ],
    [
      'an event order that is text',
      { ...good, events: [{ eventId: 'e0' }, { eventId: 'e1', order: '3' }] },
      'events',
      ['`events[1].order` to be a number, got a string of 1 character'],
    ],
    [
      'an unknown topic with a number as date',
      { metadata: { topic: 'tracking/weather', generatedAt: 5 } },
      'other',
      ['`metadata.generatedAt` to be a string, got a number'],
    ],
    [
      'a proof of delivery with two wrong fields',
      { ...proof, metadata: { topic: 'tracking/pod', messageId: 5 }, data: { status: 'found', content: [] } },
      'proofOfDelivery',
      [
        '`metadata.messageId` to be a string, got a number',
        '`data.content` to be an object, got an array of 0',
      ],
    ],
  ])('%s → kept unchanged, and reported', (_title, item, kind, rules) => {
    const { messages, rejected, mismatched } = parseWebhook(payload(item));
    expect(messages).toEqual([{ kind, ...item }]);
    expect(rejected).toEqual([]);
    expect(mismatched).toMatchObject([
      { index: 0, issues: rules.map((rule) => ({ message: `Expected ${rule}` })) },
    ]);
  });
});

describe('invalid items', () => {
  test.each<[string, unknown, string]>([
    ['null', null, '`trackings[0]` to be an object, got null'],
    ['an array', [], '`trackings[0]` to be an object, got an array of 0'],
    ['no tracker', { events: [] }, '`tracker` to be an object, got undefined'],
    [
      '`trackerId` that is a number',
      { trackerId: 5, events: [] },
      '`tracker.trackerId` to be a string, got a number',
    ],
    [
      'a topic that is a number',
      { ...good, metadata: { topic: 5 } },
      '`metadata.topic` to be a string, got a number',
    ],
    ['no `events`', { trackerId: 't1' }, '`events` to be an array, got undefined'],
    ['an event that is null', { trackerId: 't1', events: [null] }, '`events[0]` to be an object, got null'],
    [
      'an event id that is a number',
      tracking('t1', { eventId: 5 }),
      '`events[0].eventId` to be a string, got a number',
    ],
    ['a proof of delivery without data', { ...proof, data: null }, '`data` to be an object, got null'],
    [
      'a broken tracker and a broken event',
      { ...tracking('t1', 'e1', { eventId: 5 }), tracker: {} },
      '`tracker` to have a `trackerId` or a `clientTrackerId`, got neither',
    ],
  ])('%s → rejected, and the first message names the rule', (_title, item, rule) => {
    const { messages, rejected } = parseWebhook(payload(item));
    expect(messages).toEqual([]);
    expect(rejected).toHaveLength(1);
    expect(rejected[0]).toMatchObject({ index: 0 });
    expect(rejected[0]?.issues[0]?.message).toBe(`Expected ${rule}`);
  });

  test.each<[string, unknown, string]>([
    ['null', null, '`body` to be an object, got null'],
    ['an array', [], '`body` to be an object, got an array of 0'],
    ['text in JSON', '"text"', '`body` to be an object, got a string of 4 characters'],
    ['`trackings` that is no array', { trackings: {} }, '`trackings` to be an array, got an object'],
  ])('a body: %s → rejected as a whole, nothing is thrown', (_title, body, rule) => {
    const issues = [{ path: [], code: 'invalid_type', message: `Expected ${rule}` }];
    expect(parseWebhook(body)).toEqual({
      messages: [],
      duplicates: 0,
      rejected: [{ index: 0, issues }],
      mismatched: [],
    });
  });

  test('one invalid event among valid events → the valid events are kept, the invalid event is named by its path', () => {
    const { messages, rejected } = parseWebhook(payload(tracking('t1', 'e1', { eventId: 5 }, 'e3')));
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }, { eventId: 'e3' }] }]);
    const message = 'Expected `events[1].eventId` to be a string, got a number';
    const issues = [{ path: ['events', 1, 'eventId'], code: 'invalid_type', message }];
    expect(rejected).toEqual([{ index: 0, issues }]);
  });
});

describe('limits of reported issues', () => {
  test('1,000 invalid events → 20 issues, and the valid event is kept', () => {
    const events = [...Array(1_000).fill(0), { eventId: 'e1' }];
    const { messages, rejected } = parseWebhook({ trackerId: 't1', events });
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }] }]);
    expect(rejected[0]?.issues).toHaveLength(20);
  });

  test('1,000 invalid items → 100 of them are reported, and the valid item is kept', () => {
    const { messages, rejected } = parseWebhook(payload(...Array(1_000).fill(0), good));
    expect(messages).toHaveLength(1);
    expect(rejected).toHaveLength(100);
  });

  test('1,000,000 invalid tracking numbers of a shipment → kept unchanged, with one issue', () => {
    const { messages, mismatched } = parseWebhook(
      payload({ ...good, shipment: { trackingNumbers: Array(1_000_000).fill(0) } }),
    );
    expect(messages).toHaveLength(1);
    expect(mismatched[0]?.issues).toMatchObject([{ path: ['shipment', 'trackingNumbers', 0] }]);
  });
});

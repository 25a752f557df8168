import { describe, expect, test } from 'vitest';
import { parseWebhook, WebhookParseError } from '../../src/webhooks/index.ts';
import { payload, proofOfDelivery, tracking } from './support.ts';

const encode = (text: string) => new TextEncoder().encode(text);

/** Reads the event ids of all events messages. */
function readEventIds(body: unknown): unknown[] {
  return parseWebhook(body).messages.flatMap((message) =>
    message.kind === 'events' ? message.events.map(({ eventId }) => eventId) : [],
  );
}

describe('payload shapes', () => {
  const ids = { trackerId: 't1', clientTrackerId: 'order-1' };
  const flat = { ...ids, events: [{ eventId: 'e1' }] };
  const other = { trackerId: 't2', events: [] };
  const full = tracking('t1', 'e1');
  const proof = proofOfDelivery('t1');

  test.each<[string, unknown, object[]]>([
    ['empty `trackings`', payload(), []],
    ['two items', payload(full, tracking('t2', 'e3')), [full, { tracker: { trackerId: 't2' } }]],
    ['an item without envelope', full, [full]],
    ['an item without events', payload(tracking('t1')), [{ kind: 'events', events: [] }]],
    ['the flat shape', flat, [{ kind: 'events', tracker: ids, events: [{ eventId: 'e1' }] }]],
    ['flat items in an envelope', payload(flat, other), [{}, { tracker: { trackerId: 't2' } }]],
    ['a tracker and a `trackerId` beside it', { ...full, trackerId: 't1' }, [{ tracker: full.tracker }]],
    ['a proof of delivery', payload(proof), [{ kind: 'proofOfDelivery', ...proof }]],
    ['no topic', { ...full, metadata: {} }, [{ kind: 'events' }]],
    ['a topic that is null', { ...full, metadata: { topic: null } }, [{ kind: 'events' }]],
    ['an empty topic', { ...full, metadata: { topic: '' } }, [{ kind: 'events' }]],
    ['a `kind` that the service sends', { ...full, kind: 'other' }, [{ kind: 'events' }]],
  ])('%s → read as messages, without rejected items', (_title, body, messages) => {
    const parsed = parseWebhook(body);
    expect(parsed.messages).toMatchObject(messages);
    expect(parsed).toMatchObject({ duplicates: 0, rejected: [], mismatched: [] });
    expect(parsed.messages).toHaveLength(messages.length);
  });

  test('unknown topic → kept unchanged, kind `other`', () => {
    const item = { metadata: { topic: 'tracking/weather' }, tracker: 'anything', forecast: { rain: true } };
    expect(parseWebhook(payload(item)).messages).toEqual([{ kind: 'other', ...item }]);
  });
});

describe('body encodings', () => {
  const text = JSON.stringify(payload(tracking('t1', 'é1')));

  test.each<[string, unknown]>([
    ['text', text],
    ['bytes', encode(text)],
    ['an ArrayBuffer', encode(text).slice().buffer],
    ['parsed JSON', JSON.parse(text)],
    ['text with a byte order mark', `\uFEFF${text}`],
    ['bytes with a byte order mark', encode(`\uFEFF${text}`)],
  ])('%s → the same messages', (_title, body) => {
    expect(readEventIds(body)).toEqual(['é1']);
  });

  test.each<[string, string | Uint8Array, string, ErrorConstructor]>([
    ['UTF-8', new Uint8Array([0x22, 0xff]), 'Expected `body` to be UTF-8, got invalid bytes', TypeError],
    ['JSON', '{"secret-content":', '`body` (a string of 18 characters) is not valid JSON', SyntaxError],
    ['JSON, but empty', '', '`body` (an empty string) is not valid JSON', SyntaxError],
  ])(
    'a body that is no %s → WebhookParseError without the body, with the reason as its cause',
    (_title, body, message, Cause) => {
      const parse = () => parseWebhook(body);
      expect(parse).toThrow(WebhookParseError);
      expect(parse).toThrow(expect.objectContaining({ message, cause: expect.any(Cause) }));
    },
  );
});

describe('repeats inside a body', () => {
  test('a message whose events are in an earlier message → a duplicate, not a message', () => {
    const { messages, duplicates } = parseWebhook(payload(tracking('t1', 'e1'), tracking('t1', 'e1')));
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }] }]);
    expect(messages).toHaveLength(1);
    expect(duplicates).toBe(1);
  });

  test('a proof of delivery twice → parsed once', () => {
    const body = payload(proofOfDelivery('t1', 'm1'), proofOfDelivery('t1', 'm2'));
    expect(parseWebhook(body)).toMatchObject({ messages: [{ kind: 'proofOfDelivery' }], duplicates: 1 });
  });
});

describe('tolerance', () => {
  test('null in every optional field → accepted as sent', () => {
    const item = {
      metadata: null,
      tracker: { trackerId: 't1', trackingNumber: null, clientTrackerId: null, shipmentReference: null },
      shipment: null,
      events: [{ eventId: 'e1', status: null, occurrenceDatetime: null, order: null, location: null }],
      statistics: null,
    };
    expect(parseWebhook(payload(item)).messages).toEqual([{ kind: 'events', ...item }]);
  });

  test('unknown enum values and fields at every level → kept', () => {
    const event = { eventId: 'e1', statusMilestone: 'teleported', statusCode: 'x_y', weightKg: 2 };
    const item = { ...tracking('t1', event), carbonFootprint: { grams: 12 } };
    expect(parseWebhook(payload(item)).messages).toEqual([{ kind: 'events', ...item }]);
  });

  test.each(['not-a-uuid', 'a:b/c d', '💌', undefined, null])('event id %j → kept as it is', (eventId) => {
    expect(readEventIds(payload(tracking('t1', { eventId, status: 'Arrived' })))).toEqual([eventId]);
  });

  test('`__proto__` and `constructor` keys → no prototype changes', () => {
    const text =
      '{"__proto__":{"polluted":1},"trackings":[{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},' +
      '"tracker":{"trackerId":"t1"},"events":[{"eventId":"e1","__proto__":{"eventId":"e2","polluted":1}}]}]}';
    const [message] = parseWebhook(text).messages;
    const event = message?.kind === 'events' ? message.events[0] : undefined;
    expect(event?.eventId).toBe('e1');
    for (const value of [event, message, {}]) expect(value).not.toHaveProperty('polluted');
  });

  test('unknown field nested 100,000 levels deep → parsed without a stack overflow', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(readEventIds(`{"trackerId":"t1","events":[{"eventId":"e1","deep":${deep}}]}`)).toEqual(['e1']);
  });
});

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
        '`data.content` to be an object, got an empty array',
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
  const badEvent = tracking('t1', 'e1', { eventId: 5 });

  test.each<[string, unknown]>([
    ['`trackings[0]` to be an object, got null', null],
    ['`trackings[0]` to be an object, got an empty array', []],
    ['`tracker` to be an object, got undefined', { events: [] }],
    ['`tracker.trackerId` to be a string, got a number', { trackerId: 5, events: [] }],
    ['`metadata.topic` to be a string, got a number', { ...good, metadata: { topic: 5 } }],
    ['`events` to be an array, got undefined', { trackerId: 't1' }],
    ['`events[0]` to be an object, got null', { trackerId: 't1', events: [null] }],
    ['`events[0].eventId` to be a string, got a number', tracking('t1', { eventId: 5 })],
    ['`data` to be an object, got null', { ...proof, data: null }],
    ['`tracker` to have a `trackerId` or a `clientTrackerId`, got neither', { ...badEvent, tracker: {} }],
  ])('expected %s → rejected, and the first message says so', (rule, item) => {
    const { messages, rejected } = parseWebhook(payload(item));
    expect(messages).toEqual([]);
    expect(rejected).toHaveLength(1);
    expect(rejected[0]).toMatchObject({ index: 0 });
    expect(rejected[0]?.issues[0]?.message).toBe(`Expected ${rule}`);
  });

  test.each<[string, unknown]>([
    ['`body` to be an object, got null', null],
    ['`body` to be an object, got an empty array', []],
    ['`body` to be an object, got a string of 4 characters', '"text"'],
    ['`trackings` to be an array, got an object', { trackings: {} }],
  ])('expected %s → the body is rejected as a whole, nothing is thrown', (rule, body) => {
    const issues = [{ path: [], code: 'invalid_type', message: `Expected ${rule}` }];
    expect(parseWebhook(body)).toEqual({
      messages: [],
      duplicates: 0,
      rejected: [{ index: 0, issues }],
      mismatched: [],
    });
  });

  test('a tracker without either id → the issue has the path of the tracker', () => {
    const { rejected } = parseWebhook(payload({ ...good, tracker: {} }));
    expect(rejected[0]?.issues[0]?.path).toEqual(['tracker']);
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

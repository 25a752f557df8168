import { describe, expect, test } from 'vitest';
import { parseWebhook, WebhookParseError } from '../../src/webhooks/index.ts';
import { payload, proofOfDelivery, tracking } from './support.ts';

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Ids of all events of all events messages. */
function eventIdsOf(body: unknown): unknown[] {
  return parseWebhook(body).messages.flatMap((message) =>
    message.kind === 'events' ? message.events.map(({ eventId }) => eventId) : [],
  );
}

describe('payload shapes', () => {
  test('enveloped payload → one events delivery an item', () => {
    const { messages, rejected } = parseWebhook(payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3')));
    expect(messages.map(({ kind }) => kind)).toEqual(['events', 'events']);
    expect(eventIdsOf(payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3')))).toEqual(['e1', 'e2', 'e3']);
    expect(rejected).toEqual([]);
  });

  test('flat payload → an events delivery with a tracker of its ids', () => {
    const { messages } = parseWebhook({
      trackerId: 't1',
      clientTrackerId: 'order-1',
      events: [{ eventId: 'e1' }],
    });
    expect(messages).toMatchObject([
      {
        kind: 'events',
        tracker: { trackerId: 't1', clientTrackerId: 'order-1' },
        events: [{ eventId: 'e1' }],
      },
    ]);
  });

  test('flat payload with one of the ids → a tracker with that id alone', () => {
    const { messages } = parseWebhook({ trackerId: 't1', events: [] });
    expect(messages.map((message) => message.kind === 'events' && message.tracker)).toStrictEqual([
      { trackerId: 't1' },
    ]);
  });

  test('flat items in an envelope → one events delivery each', () => {
    const body = payload({ trackerId: 't1', events: [{ eventId: 'e1' }] }, { trackerId: 't2', events: [] });
    expect(parseWebhook(body).messages).toMatchObject([
      { tracker: { trackerId: 't1' } },
      { tracker: { trackerId: 't2' } },
    ]);
  });

  test('an item with a tracker and a `trackerId` beside it → the whole tracker is kept', () => {
    const item = { ...tracking('t1', 'e1'), trackerId: 't1' };
    expect(parseWebhook(payload(item)).messages).toMatchObject([{ tracker: item.tracker }]);
  });

  test('an item without envelope → one delivery', () => {
    expect(parseWebhook(tracking('t1', 'e1')).messages).toMatchObject([{ tracker: { trackerId: 't1' } }]);
  });

  test('empty `trackings` → nothing delivered, nothing rejected', () => {
    expect(parseWebhook(payload())).toEqual({ messages: [], duplicates: 0, rejected: [], mismatched: [] });
  });

  test('empty `events` → a delivery without events', () => {
    expect(parseWebhook(payload(tracking('t1'))).messages).toMatchObject([{ kind: 'events', events: [] }]);
  });

  test('proof of delivery → kind `proofOfDelivery` with its content', () => {
    expect(parseWebhook(payload(proofOfDelivery('t1'))).messages).toMatchObject([
      {
        kind: 'proofOfDelivery',
        data: { status: 'found', content: { downloadUrl: 'https://example.com/1.pdf' } },
      },
    ]);
  });

  test('unknown topic → kept as it came, kind `other`', () => {
    const item = { metadata: { topic: 'tracking/weather' }, tracker: 'anything', forecast: { rain: true } };
    expect(parseWebhook(payload(item)).messages).toEqual([{ kind: 'other', ...item }]);
  });

  test.each([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
  ])('%s topic beside `events` → an events delivery', (_title, topic) => {
    const item = { ...tracking('t1', 'e1'), metadata: { topic } };
    expect(parseWebhook(payload(item)).messages).toMatchObject([{ kind: 'events' }]);
  });
});

describe('body encodings', () => {
  const text = JSON.stringify(payload(tracking('t1', 'é1')));

  test.each<[string, unknown]>([
    ['text', text],
    ['bytes', bytesOf(text)],
    ['an ArrayBuffer', bytesOf(text).slice().buffer],
    ['parsed JSON', JSON.parse(text)],
    ['text with a byte order mark', `\uFEFF${text}`],
    ['bytes with a byte order mark', bytesOf(`\uFEFF${text}`)],
  ])('%s → the same messages', (_title, body) => {
    expect(eventIdsOf(body)).toEqual(['é1']);
  });

  test('invalid UTF-8 → WebhookParseError, not a replacement character in an id', () => {
    const bytes = bytesOf(text);
    bytes[text.indexOf('é')] = 0xff;
    expect(() => parseWebhook(bytes)).toThrow(WebhookParseError);
  });

  test.each<[string, string | Uint8Array, string, ErrorConstructor]>([
    ['UTF-8', new Uint8Array([0xff]), 'Expected `body` to be UTF-8, got invalid bytes', TypeError],
    ['JSON', '{', 'Expected `body` to be JSON, got a string of 1 character', SyntaxError],
  ])('a body that is no %s → the message says so, the cause is why', (_title, body, message, Cause) => {
    expect(() => parseWebhook(body)).toThrow(expect.objectContaining({ message, cause: expect.any(Cause) }));
  });

  test.each(['', '{', '{"trackings":[', 'undefined', '\u0000'])('%j → WebhookParseError', (body) => {
    expect(() => parseWebhook(body)).toThrow(WebhookParseError);
  });

  test('a cut-off body → the message names the rule and does not show the body', () => {
    expect(() => parseWebhook('{"secret-content":')).toThrow(
      'Expected `body` to be JSON, got a string of 18 characters',
    );
  });

  test.each([
    ['null', null],
    ['number', 5],
    ['array', []],
    ['text in JSON', '"text"'],
  ])('JSON that is no object: %s → rejected, not thrown', (_title, body) => {
    const { messages, rejected } = parseWebhook(body);
    expect(messages).toEqual([]);
    expect(rejected).toMatchObject([{ index: 0, issues: [{ code: 'invalid_type' }] }]);
  });
});

describe('trackers and repeats', () => {
  test('a tracker without any id → rejected, and the message names both', () => {
    const { rejected } = parseWebhook({ trackings: [{ tracker: {}, events: [{ eventId: 'e1' }] }] });
    const message = 'Expected `tracker` to have a `trackerId` or a `clientTrackerId`, got neither';
    expect(rejected).toMatchObject([{ index: 0, issues: [{ path: ['tracker'], message }] }]);
  });

  test('a delivery whose events came earlier in the body → kept without them, for its shipment', () => {
    const { messages, duplicates } = parseWebhook(payload(tracking('t1', 'e1'), tracking('t1', 'e1')));
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }] }, { events: [] }]);
    expect(duplicates).toBe(1);
  });

  test('a proof of delivery twice → once', () => {
    const body = payload(proofOfDelivery('t1', 'm1'), proofOfDelivery('t1', 'm2'));
    expect(parseWebhook(body)).toMatchObject({ messages: [{ kind: 'proofOfDelivery' }], duplicates: 1 });
  });
});

describe('tolerance', () => {
  test('null in every optional field → accepted as sent', () => {
    const event = { eventId: 'e1', status: null, occurrenceDatetime: null, order: null, location: null };
    const item = {
      metadata: null,
      tracker: { trackerId: 't1', trackingNumber: null, clientTrackerId: null, shipmentReference: null },
      shipment: null,
      events: [event],
      statistics: null,
    };
    expect(parseWebhook(payload(item)).messages).toEqual([{ kind: 'events', ...item }]);
  });

  test('unknown enum values → kept', () => {
    const body = payload(tracking('t1', { eventId: 'e1', statusMilestone: 'teleported', statusCode: 'x_y' }));
    expect(parseWebhook(body).messages).toMatchObject([
      { events: [{ statusMilestone: 'teleported', statusCode: 'x_y' }] },
    ]);
  });

  test('unknown fields at every level → kept', () => {
    const item = {
      ...tracking('t1', { eventId: 'e1', weightKg: 2 }),
      carbonFootprint: { grams: 12 },
    };
    expect(parseWebhook(payload(item)).messages).toMatchObject([
      { carbonFootprint: { grams: 12 }, events: [{ weightKg: 2 }] },
    ]);
  });

  test.each(['not-a-uuid', '12', 'a:b/c d', '💌'])('event id %j → kept as it is', (eventId) => {
    expect(eventIdsOf(payload(tracking('t1', eventId)))).toEqual([eventId]);
  });

  test.each([
    ['missing', {}],
    ['null', { eventId: null }],
  ])('%s event id → the event is kept', (_title, id) => {
    const { messages, rejected } = parseWebhook(payload(tracking('t1', { ...id, status: 'Arrived' })));
    expect(messages).toMatchObject([{ events: [{ status: 'Arrived' }] }]);
    expect(rejected).toEqual([]);
  });

  test('a `kind` that the service sends → does not decide what the item is', () => {
    const item = { ...tracking('t1', 'e1'), kind: 'other' };
    expect(parseWebhook(payload(item)).messages).toMatchObject([{ kind: 'events' }]);
  });

  test('`__proto__` and `constructor` keys → no prototype changes', () => {
    const text =
      '{"__proto__":{"polluted":1},"trackings":[{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},' +
      '"tracker":{"trackerId":"t1"},"events":[{"eventId":"e1","__proto__":{"eventId":"e2","polluted":1}}]}]}';
    const { messages } = parseWebhook(text);
    const [message] = messages;
    const event = message?.kind === 'events' ? message.events[0] : undefined;
    expect(event?.eventId).toBe('e1');
    expect(event).not.toHaveProperty('polluted');
    expect(message).not.toHaveProperty('polluted');
    expect({}).not.toHaveProperty('polluted');
  });

  test('`__proto__` holding `trackings` → not taken for the envelope', () => {
    const { messages, rejected } = parseWebhook('{"__proto__":{"trackings":[]}}');
    expect(messages).toEqual([]);
    expect(rejected).toHaveLength(1);
  });

  test('unknown field nested 100,000 levels deep → parsed without a stack overflow', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(eventIdsOf(`{"trackerId":"t1","events":[{"eventId":"e1","deep":${deep}}]}`)).toEqual(['e1']);
  });
});

describe('bodies that would block the event loop', () => {
  test('10 MiB of `{}` → refused within 500 ms', () => {
    const body = `{"trackerId":"t1","events":[{}${',{}'.repeat((10 * 2 ** 20) / 3 - 20)}]}`;
    const before = process.cpuUsage();
    expect(() => parseWebhook(body)).toThrow('Expected `body` to hold at most 250000 objects, got more');
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(500);
  });

  test('100,000 events as text → all read', () => {
    const events = Array.from({ length: 100_000 }, (_, index) => ({ eventId: `e${index}` }));
    const [message] = parseWebhook(JSON.stringify({ trackerId: 't1', events })).messages;
    expect(message).toMatchObject({ kind: 'events', events: expect.objectContaining({ length: 100_000 }) });
  });
});

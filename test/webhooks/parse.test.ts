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
  const flat = { trackerId: 't1', clientTrackerId: 'order-1', events: [{ eventId: 'e1' }] };
  const full = tracking('t1', 'e1');

  test.each<[string, unknown, object[]]>([
    ['empty `trackings`', payload(), []],
    ['two items', payload(full, tracking('t2', 'e3')), [full, { tracker: { trackerId: 't2' } }]],
    ['an item without envelope', full, [full]],
    ['an item without events', payload(tracking('t1')), [{ kind: 'events', events: [] }]],
    [
      'the flat shape',
      flat,
      [
        {
          kind: 'events',
          tracker: { trackerId: 't1', clientTrackerId: 'order-1' },
          events: [{ eventId: 'e1' }],
        },
      ],
    ],
    [
      'flat items in an envelope',
      payload(flat, { trackerId: 't2', events: [] }),
      [{}, { tracker: { trackerId: 't2' } }],
    ],
    ['a tracker and a `trackerId` beside it', { ...full, trackerId: 't1' }, [{ tracker: full.tracker }]],
    [
      'a proof of delivery',
      payload(proofOfDelivery('t1')),
      [{ kind: 'proofOfDelivery', ...proofOfDelivery('t1') }],
    ],
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
    [
      'UTF-8',
      new Uint8Array([0x22, 0xff, 0x22]),
      'Expected `body` to be UTF-8, got invalid bytes',
      TypeError,
    ],
    ['JSON', '{"secret-content":', '`body` (a string of 18 characters) is not valid JSON', SyntaxError],
    ['JSON, but empty', '', '`body` (an empty string) is not valid JSON', SyntaxError],
    [
      'JSON, but `undefined`',
      'undefined',
      '`body` (a string of 9 characters) is not valid JSON',
      SyntaxError,
    ],
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

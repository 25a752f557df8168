import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildProofOfDeliveryKey, canonicalJson } from '../../src/common/event-keys.ts';
import { buildEventKey } from '../../src/index.ts';
import { parseWebhook, type WebhookMessage } from '../../src/webhooks/index.ts';
import { makeInbox, payload, proofOfDelivery, tracking } from '../webhooks/support.ts';

/** Builds the key of the proof of delivery, or of each event, in a webhook of one item. */
function buildKeys(item: object): string[] {
  return parseWebhook(payload(item)).messages.flatMap((message: WebhookMessage) => {
    if (message.kind === 'proofOfDelivery') return buildProofOfDeliveryKey(message);
    if (message.kind !== 'events') return [];
    return message.events.map((event) => buildEventKey(message.tracker, event));
  });
}

describe('buildEventKey', () => {
  test('an event with id → topic:trackerId:eventId', () => {
    expect(buildKeys(tracking('t1', 'e1'))).toEqual(['tracking/events:t1:e1']);
  });

  test('events without id at places that are objects → equal objects have one key, and different objects two', () => {
    const places = [{ city: 'Lyon', zip: 1 }, { zip: 1, city: 'Lyon' }, { city: 'Ulm', zip: 1 }, 'Lyon'];
    const [key, same, other, text] = places.flatMap((location) => buildKeys(tracking('t1', { location })));
    expect(same).toBe(key);
    expect(new Set([key, other, text]).size).toBe(3);
  });

  test.each([
    [{ trackerId: '', clientTrackerId: 'order-1' }, '%client=order-1'],
    [{ trackerId: '' }, ''],
  ])('the tracker %j → %j in the key', (tracker, name) => {
    expect(buildKeys({ tracker, events: [{ eventId: 'e1' }] })).toEqual([`tracking/events:${name}:e1`]);
  });

  test('an id with a colon, and an id that looks like the escaped one → different keys', () => {
    expect(buildKeys(tracking('a:b', 'e1'))).not.toEqual(buildKeys(tracking('a%3Ab', 'e1')));
    expect(buildKeys(tracking('a%3Ab', 'e1'))).not.toEqual(buildKeys(tracking('a%253Ab', 'e1')));
  });

  test('different tracker and event ids, whatever characters they have → different keys', () => {
    const id = fc.string({ minLength: 1, unit: fc.constantFrom(':', '%', '3', 'A', 'a', '/') });
    fc.assert(
      fc.property(id, id, id, id, (tracker, event, otherTracker, otherEvent) => {
        fc.pre(tracker !== otherTracker || event !== otherEvent);
        expect(buildKeys(tracking(tracker, event))).not.toEqual(
          buildKeys(tracking(otherTracker, otherEvent)),
        );
      }),
    );
  });

  test('an account → a part of the key; without an account, the key is as before', () => {
    const build = (account?: string) => buildEventKey({ trackerId: 't1' }, { eventId: 'e1' }, account);
    expect([build('acme'), build('a:b'), build()]).toEqual([
      'tracking/events:%account=acme:t1:e1',
      'tracking/events:%account=a%3Ab:t1:e1',
      'tracking/events:t1:e1',
    ]);
  });

  test('different accounts, or an account and none, whatever characters the ids have → different keys', () => {
    const id = fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom(':', 'a') });
    const parts = fc.tuple(fc.option(id, { nil: undefined }), id, id);
    const keysOf = ([account, trackerId, eventId]: readonly [string | undefined, string, string]) => {
      const [message] = parseWebhook(payload(proofOfDelivery(trackerId))).messages;
      const proof = message?.kind === 'proofOfDelivery' ? buildProofOfDeliveryKey(message, account) : '';
      return [buildEventKey({ trackerId }, { eventId }, account), proof];
    };
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        fc.pre(one[0] !== other[0]);
        const others = keysOf(other);
        expect(keysOf(one).filter((key) => others.includes(key))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([{}, { eventId: null }, { eventId: '' }])('event id %j → a SHA-256 of the content', (id) => {
    const [key] = buildKeys(tracking('t1', { ...id, status: 'Arrived' }));
    expect(key).toMatch(/^tracking\/events:t1:sha256-[0-9a-f]{64}$/);
    expect(buildKeys(tracking('t1', { ...id, status: 'Left' }))).not.toEqual([key]);
  });

  test.each<[id: unknown]>([[{ a: 1 }], [{ toString: 1 }], [['e1']], [true]])(
    'event id %j, which results can have by mistake → a SHA-256 of the content',
    (id) => {
      const build = (eventId: unknown, status: string) => {
        const event: object = { eventId, status };
        return buildEventKey({ trackerId: 't1' }, event);
      };
      expect(build(id, 'Arrived')).toMatch(/^tracking\/events:t1:sha256-[0-9a-f]{64}$/);
      expect(build(id, 'Left')).not.toBe(build(id, 'Arrived'));
      expect(build({ b: 2 }, 'Arrived')).not.toBe(build(id, 'Arrived'));
    },
  );

  test('an event without id → the key of its webhook, whatever its content', async () => {
    // zod drops a field of this name.
    const name = fc.string().filter((text) => text !== '__proto__');
    const content = fc.dictionary(name, fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(content, fc.constantFrom('', null, undefined), async (content, eventId) => {
        const event = { ...content, eventId };
        const keys: string[] = [];
        const onEvent = (_: unknown, { key }: { key: string }) => void keys.push(key);
        await makeInbox().process(JSON.stringify(payload(tracking('t1', event))), { onEvent });
        expect(keys).toEqual([buildEventKey({ trackerId: 't1' }, event)]);
      }),
    );
  });

  test('the same event without id, fields in another order → the same key', () => {
    const event = { status: 'Arrived', location: 'Beijing', extra: { a: 1, b: 2 } };
    const reordered = { extra: { b: 2, a: 1 }, location: 'Beijing', status: 'Arrived' };
    expect(buildKeys(tracking('t1', reordered))).toEqual(buildKeys(tracking('t1', event)));
  });

  test('an event without id, nested 10,000 levels deep → rejected, and its siblings have keys', () => {
    const deep = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`);
    const body = payload(tracking('t1', 'e1', { deep }, 'e2'), tracking('t2', 'e3'));
    const { messages, rejected } = parseWebhook(body);
    expect(messages).toMatchObject([{ events: [{ eventId: 'e1' }, { eventId: 'e2' }] }, {}]);
    expect(rejected).toMatchObject([{ index: 0, issues: [{ code: 'invalid_type' }] }]);
  });

  test.each([
    [
      { status: 'Arrived', b: { d: [1, null], c: 'é' }, 10: 1, 9: 2 },
      'eaff248281771171a66f1528fa6c742599930ed0d7cacfca99fa5c2a40a8c3c3',
    ],
    [
      { eventId: '', location: null, nested: { z: { y: [] }, a: {} } },
      'd5ed2e99053475164287a985da1d3a577a3b31496b39af7e8f3a13345e1d64ed',
    ],
  ])('the content %j → always this SHA-256, which stores remember', (event, hash) => {
    expect(buildKeys(tracking('t1', event))).toEqual([`tracking/events:t1:sha256-${hash}`]);
  });
});

describe('canonicalJson', () => {
  test('any JSON value → text that parses back to it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(canonicalJson(JSON.parse(text)))).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe('buildProofOfDeliveryKey', () => {
  test('a proof, whatever its message id → trackerId and a SHA-256 of the content', () => {
    const keys = ['m1', 'm2', null].flatMap((id) => buildKeys(proofOfDelivery('t1', id)));
    expect(keys[0]).toMatch(/^t1:sha256-[0-9a-f]{64}$/);
    expect(new Set(keys).size).toBe(1);
  });

  const linkTo = (downloadUrl: string) => {
    const proof = proofOfDelivery('t1');
    const data = { ...proof.data, content: { ...proof.data.content, downloadUrl } };
    return buildKeys({ ...proof, data })[0];
  };

  test('a download URL that is signed anew → the same key', () => {
    const keys = ['?signature=1', '?signature=2#page=1', '#x?y', ''].map((end) =>
      linkTo(`https://example.com/1.pdf${end}`),
    );
    expect(new Set(keys).size).toBe(1);
  });

  test('a download URL of another path → another key', () => {
    expect(linkTo('https://example.com/1.pdf?a')).not.toBe(linkTo('https://example.com/2.pdf?a'));
  });

  test('two proofs of one tracker with different content → two keys', () => {
    const found = proofOfDelivery('t1');
    const unavailable = { ...found, data: { ...found.data, status: 'unavailable' } };
    expect(buildKeys(found)).not.toEqual(buildKeys(unavailable));
  });
});

test.each(['t1', 't1:e1', '%client=t1', 'client', '%'])(
  'trackerId %j and the same clientTrackerId → two keys, whatever the id looks like',
  (id) => {
    const ids = [{ trackerId: id }, { clientTrackerId: id }, { clientTrackerId: `%client=${id}` }];
    const keys = ids.flatMap((tracker) => buildKeys({ tracker, events: [{ eventId: 'e1' }] }));
    expect(new Set(keys).size).toBe(3);
  },
);

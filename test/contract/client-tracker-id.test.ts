import {
  createWebhookHandler,
  MemoryDedupeStore,
  parseWebhook,
  WebhookInbox,
} from 'tracking-client/webhooks';
import { describe, expect, test } from 'vitest';
import { buildEventKeys } from '../../src/events/keys.ts';
import { SECRET } from './support/receiver.ts';
import { EVENT, EVENTS_ITEM, PROOF_ITEM, WEBHOOK_TRACKER } from './support/samples.ts';

const { trackerId: _trackerId, ...others } = WEBHOOK_TRACKER;

function enveloped(clientTrackerId: string) {
  return { trackings: [{ ...EVENTS_ITEM, tracker: { ...others, clientTrackerId } }] };
}

function flat(clientTrackerId: string) {
  return { clientTrackerId, events: [EVENT] };
}

const SHAPES = [
  ['enveloped', enveloped],
  ['flat', flat],
] as const;

/** A receiver that counts what it handles. */
function receiver() {
  const handled: unknown[] = [];
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  const handle = createWebhookHandler({
    secret: SECRET,
    inbox,
    onEvent: (_event, { message }) => handled.push(message.tracker.clientTrackerId),
    onProofOfDelivery: ({ tracker }) => handled.push(tracker.clientTrackerId),
  });
  const push = async (body: object): Promise<number> => {
    const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
    const request = new Request('https://shop.example.test/webhooks', {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return (await handle(request)).status;
  };
  return { push, handled };
}

describe('a webhook whose tracker has only its clientTrackerId (service.md 6.3)', () => {
  test.each(SHAPES)('%s → parsed, nothing rejected', (_shape, body) => {
    const { messages, rejected } = parseWebhook(body('order-1'));
    expect(rejected).toEqual([]);
    expect(messages).toMatchObject([{ kind: 'events', tracker: { clientTrackerId: 'order-1' } }]);
  });

  test.each(SHAPES)('%s → 200, handled', async (_shape, body) => {
    const { push, handled } = receiver();
    expect(await push(body('order-1'))).toBe(200);
    expect(handled).toEqual(['order-1']);
  });

  test.each(SHAPES)('%s, twice → handled once', async (_shape, body) => {
    const { push, handled } = receiver();
    await push(body('order-1'));
    expect(await push(body('order-1'))).toBe(200);
    expect(handled).toEqual(['order-1']);
  });

  test.each(SHAPES)('%s, one eventId of two trackers → both are handled', async (_shape, body) => {
    const { push, handled } = receiver();
    await push(body('order-1'));
    await push(body('order-2'));
    expect(handled).toEqual(['order-1', 'order-2']);
  });

  test('a clientTrackerId that looks like a trackerId → another key', () => {
    const keys = [{ trackings: [EVENTS_ITEM] }, enveloped(WEBHOOK_TRACKER.trackerId)].map((body) => {
      const [message] = parseWebhook(body).messages;
      return message?.kind === 'events' ? buildEventKeys(message)(EVENT) : 'none';
    });
    expect(keys).not.toContain('none');
    expect(keys[0]).not.toBe(keys[1]);
  });

  test('a proof of delivery → handled', async () => {
    const { push, handled } = receiver();
    const tracker = { ...others, clientTrackerId: 'order-1' };
    expect(await push({ trackings: [{ ...PROOF_ITEM, tracker }] })).toBe(200);
    expect(handled).toEqual(['order-1']);
  });

  test.each([
    ['neither id', { events: [EVENT] }],
    ['both ids null', { trackerId: null, clientTrackerId: null, events: [EVENT] }],
  ])('%s → 422: nothing says whose events they are', async (_what, body) => {
    expect(await receiver().push(body)).toBe(422);
  });
});

describe('one body that repeats an event (row 22)', () => {
  test('the same event twice → one delivered event, duplicates 1', () => {
    const parsed = parseWebhook({ trackings: [EVENTS_ITEM, EVENTS_ITEM] });
    const events = parsed.messages.flatMap((message) => (message.kind === 'events' ? message.events : []));
    expect(events).toHaveLength(1);
    expect(Reflect.get(parsed, 'duplicates')).toBe(1);
  });

  test('the same eventId of two trackers → two events, duplicates 0', () => {
    const other = { ...EVENTS_ITEM, tracker: { ...WEBHOOK_TRACKER, trackerId: 't2' } };
    const parsed = parseWebhook({ trackings: [EVENTS_ITEM, other] });
    expect(parsed.messages).toHaveLength(2);
    expect(Reflect.get(parsed, 'duplicates')).toBe(0);
  });
});

import { describe, expect, test, vi } from 'vitest';
import { TrackingClient, type WebhookHistory } from '../../src/index.ts';
import { createFakeTrackingService, createWebhookSender } from '../../src/testing/index.ts';
import {
  createWebhookHandler,
  type EventContext,
  MemoryDedupeStore,
  type WebhookEvent,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import { HISTORY } from '../contract/support/samples.ts';
import { payload, proofOfDelivery, tracking } from './support.ts';

const SECRET = 'whsec-1';
const METADATA = { trackingNumber: '9400115901047177598206', trackerId: 't1', clientTrackerId: 'order-t1' };

function makeInbox() {
  const onError = vi.fn();
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError });
  const onEvent = vi.fn((_event: WebhookEvent, _context: EventContext) => {});
  const listKeys = () => onEvent.mock.calls.map(([, { key }]) => key);
  const listTimes = () => onEvent.mock.calls.map(([, { message }]) => message.metadata?.generatedAt);
  return { inbox, onError, onEvent, listKeys, listTimes };
}

/** A history with these bodies, newest first, pushed at 00:01, 00:02 and so on, the last body first. */
function buildHistory(...bodies: unknown[]): WebhookHistory {
  const webhooks = bodies.map((requestBody, index) => ({
    requestBody,
    pushTimestamp: `2026-03-04T00:0${bodies.length - index}:00.000Z`,
  }));
  return { metadata: METADATA, webhooks };
}

/** The item of the service's own example: neither tracker nor metadata. */
const bare = (...eventIds: string[]) => ({
  shipment: { statusMilestone: 'in_transit' },
  events: eventIds.map((eventId) => ({ eventId })),
});

describe('the tracker and the time of a push', () => {
  test.each<[string, unknown]>([
    ['a bare item', bare('e1')],
    ['a list of a bare item', payload(bare('e1'))],
    ['the text of a bare item', JSON.stringify(bare('e1'))],
    ['the text of a list', JSON.stringify(payload(bare('e1')))],
    ['an item whose tracker and metadata are null', { ...bare('e1'), tracker: null, metadata: null }],
    ['an item with a tracker without ids', { ...bare('e1'), tracker: { trackingNumber: 'other' } }],
    ['an item with null ids', { ...bare('e1'), trackerId: null, clientTrackerId: null }],
    ['an item with metadata without a time', { ...bare('e1'), metadata: { topic: 'tracking/events' } }],
    ['an item with metadata without a topic', { ...bare('e1'), metadata: { messageId: 'm1' } }],
  ])('%s → the tracker of the history, and the time of the push', async (_title, body) => {
    const { inbox, onEvent, onError, listKeys, listTimes } = makeInbox();
    expect(await inbox.processHistory(buildHistory(body), onEvent)).toMatchObject({
      outcome: 'done',
      handled: 1,
    });
    expect(onEvent.mock.lastCall?.[1].message.tracker).toEqual(METADATA);
    expect(listKeys()).toEqual(['tracking/events:t1:e1']);
    expect(listTimes()).toEqual(['2026-03-04T00:01:00.000Z']);
    expect(onError).not.toHaveBeenCalled();
  });

  test.each<[string, unknown, string]>([
    ['an item with both', tracking('t2', 'e1'), 'tracking/events:t2:e1'],
    ['a list of an item with both', payload(tracking('t2', 'e1')), 'tracking/events:t2:e1'],
    [
      'a flat item with its own id and metadata',
      { ...bare('e1'), metadata: tracking('t2').metadata, clientTrackerId: 'mine' },
      'tracking/events:%client=mine:e1',
    ],
  ])('%s → kept as it was pushed', async (_title, body, key) => {
    const { inbox, onEvent, listKeys, listTimes } = makeInbox();
    await inbox.processHistory(buildHistory(body), onEvent);
    expect([listKeys(), listTimes()]).toEqual([[key], ['2026-03-04T17:12:57.000Z']]);
  });

  test('neither a generatedAt nor a pushTimestamp → handled without a time', async () => {
    const { inbox, onEvent, listTimes } = makeInbox();
    const history = { metadata: METADATA, webhooks: [{ requestBody: bare('e1'), pushTimestamp: null }] };
    expect(await inbox.processHistory(history, onEvent)).toMatchObject({ outcome: 'done', handled: 1 });
    expect(listTimes()).toEqual([undefined]);
  });

  test('the history keeps its values', async () => {
    const { inbox, onEvent } = makeInbox();
    const history = buildHistory(bare('e1'), payload(bare('e2'), proofOfDelivery('t1')));
    const before = structuredClone(history);
    await inbox.processHistory(history, onEvent);
    expect(history).toEqual(before);
  });
});

describe('a replay', () => {
  test('events that a handler has received → duplicates; an event that was lost → handled', async () => {
    const fake = createFakeTrackingService({ limits: false });
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    const { trackerId } = await client.trackers.create({ trackingNumber: 'RR123456785CN' });
    const { inbox, onEvent, listKeys } = makeInbox();
    const target = createWebhookHandler({ secret: SECRET, inbox, onEvent });
    fake.shipment('RR123456785CN').addEvent({ statusMilestone: 'in_transit' });
    await createWebhookSender({ target, secret: SECRET, fake }).flush();
    fake.shipment('RR123456785CN').addEvent({ statusMilestone: 'delivered' });
    await createWebhookSender({ target: () => new Response(), secret: SECRET, fake }).flush();
    expect(onEvent).toHaveBeenCalledTimes(1);
    const history = await client.trackers.webhookHistory(trackerId);
    expect(await inbox.processHistory(history, onEvent)).toMatchObject({ handled: 1, duplicates: 1 });
    expect(new Set(listKeys()).size).toBe(2);
    expect(await inbox.processHistory(history, onEvent)).toMatchObject({ handled: 0, duplicates: 2 });
  });

  test('pushes without dates in their events → oldest push first, and each event with its first push', async () => {
    const { inbox } = makeInbox();
    const history = buildHistory(bare('e3', 'e1'), bare('e2'), bare('e1'));
    const onEvents = vi.fn((_message: { readonly events: readonly unknown[] }) => {});
    const report = await inbox.processHistory(history, { onEvents });
    expect(onEvents.mock.calls.map(([{ events }]) => events)).toEqual([
      [{ eventId: 'e1' }],
      [{ eventId: 'e2' }],
      [{ eventId: 'e3' }],
    ]);
    expect(report).toMatchObject({ outcome: 'done', handled: 3, duplicates: 1 });
  });

  test('the example of the service, with one push that failed → its event is handled once', async () => {
    const { inbox, onEvent } = makeInbox();
    const report = await inbox.processHistory(HISTORY, onEvent);
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
  });

  const { tracker: _tracker, ...withoutTracker } = proofOfDelivery('t1');
  const withoutMetadata = { data: withoutTracker.data };
  test.each<[string, unknown, string | undefined]>([
    ['without its tracker', payload(withoutTracker), '2026-03-05T10:00:00.000Z'],
    ['without tracker and metadata', withoutMetadata, '2026-03-05T10:00:00.000Z'],
    ['without tracker and metadata, and without the time of its push', withoutMetadata, undefined],
  ])('a proof of delivery %s → the key of its first delivery', async (_title, requestBody, pushTimestamp) => {
    const { inbox } = makeInbox();
    const onProofOfDelivery = vi.fn();
    await inbox.process(payload(proofOfDelivery('t1')), { onProofOfDelivery });
    const history = { metadata: METADATA, webhooks: [{ requestBody, pushTimestamp }] };
    const report = await inbox.processHistory(history, { onProofOfDelivery });
    expect(report).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1 });
  });

  test('an account → its keys', async () => {
    const { inbox, onEvent, listKeys } = makeInbox();
    await inbox.processHistory(buildHistory(bare('e1')), onEvent, { account: 'acme' });
    expect(listKeys()).toEqual(['tracking/events:%account=acme:t1:e1']);
  });

  test('an empty history → done', async () => {
    const { inbox, onEvent } = makeInbox();
    expect(await inbox.processHistory(buildHistory(), onEvent)).toMatchObject({
      outcome: 'done',
      handled: 0,
    });
  });
});

describe('what cannot be replayed', () => {
  test.each<[string, unknown]>([
    ['nothing', null],
    ['text that is not JSON', 'not JSON'],
    ['bytes that are not UTF-8', Uint8Array.of(0xff)],
    ['a list', [bare('e2')]],
    ['an item that is not an object', payload(5)],
    ['trackings that are not a list', { trackings: {} }],
    ['events that are not a list', { events: {} }],
  ])(
    'a body that is %s → rejected with the position of the push, and the others are handled',
    async (_title, body) => {
      const { inbox, onEvent, onError } = makeInbox();
      const report = await inbox.processHistory(buildHistory(bare('e3'), body, bare('e1')), onEvent);
      expect(report).toMatchObject({ outcome: 'rejected', handled: 2, rejected: [{ index: 1 }] });
      expect(onError).toHaveBeenCalledExactlyOnceWith(
        expect.objectContaining({
          message: expect.stringMatching(/^`webhooks\[1\]` of the webhook history is inv/),
        }),
        { operation: 'parse', keys: [] },
      );
    },
  );

  test('no tracker in the push and none in the history → rejected', async () => {
    const { inbox, onEvent } = makeInbox();
    const report = await inbox.processHistory({ webhooks: [{ requestBody: bare('e1') }] }, onEvent);
    expect(report).toMatchObject({ outcome: 'rejected', handled: 0 });
  });

  test.each<[string, unknown, RegExp]>([
    ['undefined', undefined, /, got undefined$/],
    ['a list', [], /, got an empty array$/],
    ['the body of a webhook', payload(bare('e1')), /, got an object without the list `webhooks`$/],
  ])('%s instead of a history → WebhookParseError', async (_title, history, message) => {
    const { inbox, onEvent } = makeInbox();
    // The wrong type on purpose: JavaScript callers have no compiler.
    const processing = inbox.processHistory(history as WebhookHistory, onEvent);
    await expect(processing).rejects.toThrow(
      /^Expected `history` to be a result of `trackers\.webhookHistory`/,
    );
    await expect(processing).rejects.toThrow(message);
    await expect(processing).rejects.toMatchObject({ name: 'WebhookParseError' });
  });
});

import { describe, expect, test, vi } from 'vitest';
import { type Tracking, TrackingClient } from '../../src/index.ts';
import {
  buildEvent,
  buildTracker,
  buildTracking,
  createFakeTrackingService,
  createWebhookSender,
} from '../../src/testing/index.ts';
import {
  createWebhookHandler,
  type EventContext,
  MemoryDedupeStore,
  type WebhookEvent,
  WebhookInbox,
  type WebhookInboxOptions,
} from '../../src/webhooks/index.ts';
import { E1, failure, payload, tracking } from './support.ts';

const NUMBER = 'RR123456785CN';
const SECRET = 'whsec-1';

/** Results made by hand, with only the fields that a test needs; the inbox reads them as it reads JSON from a queue. */
const byHand = (results: unknown) => results as Tracking;

/** A tracker with two events in a fake service, an inbox, and the ways in which an event can come to it. */
async function makeWays(options: Partial<WebhookInboxOptions> = {}) {
  const fake = createFakeTrackingService({ limits: false });
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
  fake
    .shipment(NUMBER)
    .addEvent({ statusMilestone: 'in_transit' })
    .addEvent({ statusMilestone: 'delivered' });
  const onError = vi.fn();
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError, ...options });
  const onEvent = vi.fn(async (_event: WebhookEvent, _context: EventContext) => {});
  const target = createWebhookHandler({ secret: SECRET, inbox, onEvent });
  const sender = createWebhookSender({ target, secret: SECRET, fake });
  const readUpdate = async () => {
    for await (const update of client.trackers.poll(trackerId, { initialDelayMs: 0 })) return update;
    throw new Error('Expected an update');
  };
  const ways = {
    webhook: () => sender.flush(),
    results: async () => inbox.processResults(await client.trackers.results(trackerId), onEvent),
    track: async () => inbox.processResults(await client.trackers.track({ trackingNumber: NUMBER }), onEvent),
    poll: async () => inbox.processResults(await readUpdate(), onEvent),
  };
  /** The ids of the events of all calls, in their order. */
  const listHandled = () => onEvent.mock.calls.map(([event]) => event.eventId);
  return { fake, client, trackerId, inbox, onError, onEvent, ways, readUpdate, listHandled };
}

type Way = 'webhook' | 'results' | 'track' | 'poll';
const WAYS: readonly Way[] = ['webhook', 'results', 'track', 'poll'];
const PAIRS = WAYS.flatMap((first) => WAYS.map((second): [Way, Way] => [first, second]));

describe('one inbox for webhooks and results', () => {
  test.each(PAIRS)(
    'two events that come by %s, then by %s → each handled once, oldest first',
    async (first, second) => {
      const { client, trackerId, ways, listHandled, onError } = await makeWays();
      await ways[first]();
      await ways[second]();
      const { events } = await client.trackers.results(trackerId);
      const byOrder = [...events].sort((a, b) => Number(a.order) - Number(b.order));
      expect(listHandled()).toEqual(byOrder.map(({ eventId }) => eventId));
      expect(onError).not.toHaveBeenCalled();
    },
  );

  test('a webhook that was lost → its event comes with the next results, and only this event is new', async () => {
    const { fake, ways, listHandled } = await makeWays();
    await ways.webhook();
    fake.shipment(NUMBER).addEvent({ statusMilestone: 'exception' });
    expect(await ways.results()).toMatchObject({ outcome: 'done', handled: 1, duplicates: 2 });
    expect(listHandled()).toHaveLength(3);
    await ways.webhook();
    expect(listHandled()).toHaveLength(3);
  });
});

describe('the message of results', () => {
  test('receivedAt → its generatedAt, as a webhook writes it; everything else is as it came', async () => {
    const { client, trackerId, inbox, onEvent } = await makeWays();
    const results = await client.trackers.results(trackerId);
    const before = structuredClone(results);
    await inbox.processResults(results, onEvent, { receivedAt: new Date('2026-03-04T18:12:57+01:00') });
    const { message, key } = onEvent.mock.calls[0]?.[1] ?? {};
    expect(message).toEqual({
      ...before,
      kind: 'events',
      metadata: { topic: 'tracking/events', generatedAt: '2026-03-04T17:12:57.000Z' },
    });
    expect(key).toBe(`tracking/events:${trackerId}:${onEvent.mock.calls[0]?.[0].eventId}`);
    expect(results).toEqual(before);
  });

  test('no receivedAt → its generatedAt is now', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 4), toFake: ['Date'] });
    const { ways, onEvent } = await makeWays();
    await ways.results();
    expect(onEvent.mock.calls[0]?.[1].message.metadata?.generatedAt).toBe('2026-03-04T00:00:00.000Z');
  });

  test('a webhook with receivedAt → keeps its own generatedAt', async () => {
    const onEvent = vi.fn();
    const { inbox } = await makeWays();
    await inbox.process(tracking('t1', 'e1'), onEvent, { receivedAt: new Date(0) });
    expect(onEvent.mock.lastCall).toMatchObject([
      {},
      { message: { metadata: { generatedAt: '2026-03-04T17:12:57.000Z' } } },
    ]);
  });

  test.each([
    ['trackerId', {}],
    ['clientTrackerId', {}],
    ['trackerId', { events: [{ eventId: 'e1' }, { eventId: 'e2' }], metadata: null }],
  ])('a flat webhook with %s and %o → handled as it came, without metadata of ours', async (name, more) => {
    const { inbox, onEvent } = await makeWays();
    await inbox.process({ [name]: 'a', events: [{ eventId: 'e1' }], ...more }, onEvent);
    expect(onEvent.mock.calls[0]?.[1].message.metadata ?? undefined).toBeUndefined();
  });

  test.each([
    [
      'an envelope with a list of events beside it',
      { ...payload(tracking('t1', 'e1')), events: [{}] },
      'done',
    ],
    ['a list that contains no results', [5], 'rejected'],
    [
      'an envelope beside a list of new events',
      { ...payload(tracking('t1', 'e1')), newEvents: [{}] },
      'done',
    ],
    [
      'an item beside everything that an update has',
      { ...tracking('t1', 'e1'), newEvents: [], keys: [], tracking: undefined, poll: 1, stopped: false },
      'done',
    ],
    ['a flat webhook beside a list of new events', { trackerId: 't1', events: [], newEvents: [{}] }, 'done'],
    ['nothing but a list of new events', { newEvents: [{ eventId: 'e1' }] }, 'rejected'],
    ['an error that went through JSON', { error: { message: 'failed' } }, 'rejected'],
  ])('%s → read as a webhook, outcome $2', async (_title, body, outcome) => {
    const { inbox, onEvent } = await makeWays();
    expect(await inbox.process(body, onEvent)).toMatchObject({ outcome });
  });

  test('onEvents and results with one known event → called once, with the new event alone', async () => {
    const { client, trackerId, inbox, fake, ways } = await makeWays();
    await ways.webhook();
    fake.shipment(NUMBER).addEvent({ statusMilestone: 'exception' });
    const onEvents = vi.fn();
    await inbox.processResults(await client.trackers.results(trackerId), { onEvents });
    expect(onEvents).toHaveBeenCalledOnce();
    expect(onEvents.mock.lastCall).toMatchObject([
      { shipment: expect.anything(), events: [{ statusMilestone: 'exception' }] },
      { keys: { length: 1 } },
    ]);
  });
});

describe('a list', () => {
  test('results, an update without news and an update of another tracker → the events of all, in one report', async () => {
    const { inbox, onEvent } = await makeWays();
    const make = (trackerId: string, eventId: string) =>
      buildTracking({ tracker: buildTracker({ trackerId }), events: [buildEvent({ eventId })] });
    const list = [make('t1', 'e1'), { tracking: undefined, newEvents: [] }, { tracking: make('t2', 'e2') }];
    expect(await inbox.processResults(list, onEvent)).toMatchObject({ outcome: 'done', handled: 2 });
    expect(onEvent.mock.calls.map(([, { key }]) => key)).toEqual([
      'tracking/events:t1:e1',
      'tracking/events:t2:e2',
    ]);
  });

  test('what `resultsByTrackingNumber` returns → handled', async () => {
    const { client, inbox, onEvent } = await makeWays();
    const results = await client.trackers.resultsByTrackingNumber(NUMBER);
    expect(await inbox.processResults(results, onEvent)).toMatchObject({ outcome: 'done', handled: 2 });
  });

  test('an empty list → done', async () => {
    const { inbox, onEvent } = await makeWays();
    expect(await inbox.processResults([], onEvent)).toMatchObject({ outcome: 'done', handled: 0 });
  });

  test('results with an invalid event → onError names their position', async () => {
    const { inbox, onEvent, onError } = await makeWays();
    const invalid = { tracker: { trackerId: 't1' }, events: [{ eventId: 5 }] };
    const report = await inbox.processResults([buildTracking(), byHand(invalid)], onEvent);
    expect(report.rejected).toMatchObject([{ index: 1 }]);
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ message: expect.stringMatching(/^`results\[1\]` is invalid, /) }),
      { operation: 'parse', keys: [] },
    );
  });

  test('one poll failed → rejects with its error, and the other results are not handled', async () => {
    const { client, inbox, onEvent } = await makeWays();
    for await (const update of client.trackers.pollMany(['unknown'], { initialDelayMs: 0 })) {
      await expect(inbox.processResults([buildTracking(), update], onEvent)).rejects.toBe(update.error);
    }
    expect(onEvent).not.toHaveBeenCalled();
  });
});

test('process with a webhook whose tracker has isTracked → handled as a webhook', async () => {
  const item = tracking('t1', 'e1');
  const onEvent = vi.fn();
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  const webhook = { ...item, tracker: { ...item.tracker, isTracked: true } };
  expect(await inbox.process(webhook, onEvent)).toMatchObject({ outcome: 'done', handled: 1 });
});

describe('process with something for another method', () => {
  const makeValues = async () => {
    const { client, trackerId, inbox, onEvent, readUpdate } = await makeWays();
    const update = await readUpdate();
    return {
      inbox,
      onEvent,
      values: {
        results: await client.trackers.results(trackerId),
        'results without events': buildTracking({ events: [] }),
        track: await client.trackers.track({ trackingNumber: NUMBER }),
        'a list of results': await client.trackers.resultsByTrackingNumber(NUMBER),
        'an update': update,
        'an update without news': { ...update, tracking: undefined, newEvents: [], keys: [] },
        'a list of updates': [{}, update],
        'results with the time at which they were read': { id: trackerId, tracking: update.tracking },
      },
    };
  };
  type Name = keyof Awaited<ReturnType<typeof makeValues>>['values'];

  // As text and as bytes, the property `body-forms` compares the outcome.
  test.each<Name>([
    'results',
    'results without events',
    'track',
    'a list of results',
    'an update',
    'an update without news',
    'a list of updates',
    'results with the time at which they were read',
  ])('%s → WebhookParseError that names the other method, and nothing is called', async (name) => {
    const { inbox, onEvent, values } = await makeValues();
    const processing = inbox.process(values[name], onEvent);
    await expect(processing).rejects.toThrow(/pass them to `processResults`$/);
    await expect(processing).rejects.toMatchObject({ name: 'WebhookParseError' });
    expect(onEvent).not.toHaveBeenCalled();
  });

  test('an update whose poll failed → WebhookParseError that names the other method', async () => {
    const { client, inbox } = await makeWays();
    for await (const update of client.trackers.pollMany(['unknown'], { initialDelayMs: 0 })) {
      await expect(inbox.process(update, () => {})).rejects.toThrow(/`processResults`$/);
    }
  });
});

describe('an update of a poll', () => {
  test('readAt → the generatedAt of the message; receivedAt comes first', async () => {
    const { readUpdate, inbox, onEvent, fake } = await makeWays();
    const readAt = '2026-03-04T18:12:57+01:00';
    await inbox.processResults({ ...(await readUpdate()), readAt }, onEvent);
    expect(onEvent.mock.lastCall?.[1].message.metadata?.generatedAt).toBe('2026-03-04T17:12:57.000Z');
    fake.shipment(NUMBER).addEvent({ statusMilestone: 'exception' });
    const receivedAt = new Date('2026-03-05T00:00:00Z');
    await inbox.processResults({ ...(await readUpdate()), readAt }, onEvent, { receivedAt });
    expect(onEvent.mock.lastCall?.[1].message.metadata?.generatedAt).toBe('2026-03-05T00:00:00.000Z');
  });

  test('a readAt that is no time → its generatedAt is now', async () => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 4), toFake: ['Date'] });
    const { readUpdate, inbox, onEvent } = await makeWays();
    await inbox.processResults({ ...(await readUpdate()), readAt: 'soon' }, onEvent);
    expect(onEvent.mock.lastCall?.[1].message.metadata?.generatedAt).toBe('2026-03-04T00:00:00.000Z');
  });

  test('its event failed in the update before → handled again, although it is no new event of this update', async () => {
    const { client, trackerId, inbox, onEvent } = await makeWays();
    onEvent.mockRejectedValueOnce(failure);
    vi.useFakeTimers();
    const outcomes: unknown[] = [];
    const polling = (async () => {
      for await (const update of client.trackers.poll(trackerId, {
        initialDelayMs: 0,
        maxDurationMs: 1_000_000,
      })) {
        const { outcome } = await inbox.processResults(byHand(update), onEvent);
        outcomes.push([update.newEvents.length, outcome]);
      }
    })();
    await vi.advanceTimersByTimeAsync(1_000_000);
    await polling;
    expect(outcomes).toEqual([
      [2, 'failed'],
      [0, 'done'],
    ]);
    expect(onEvent.mock.calls.map(([, { attempt }]) => attempt)).toEqual([1, 1, 2]);
  });

  test.each<[string, object]>([
    ['no results yet', { tracking: undefined, newEvents: [] }],
    ['no results yet, and it went through JSON', { newEvents: [] }],
    ['results without events', { tracking: { tracker: { trackerId: 't1' }, events: [] }, newEvents: [] }],
  ])('%s → done, and no callback is called', async (_title, parts) => {
    const [onEvent, onOther] = [vi.fn(), vi.fn()];
    const { inbox } = await makeWays();
    const update = { keys: [], poll: 1, stopped: false, tracker: undefined, ...parts };
    expect(await inbox.processResults(byHand(update), { onEvent, onOther })).toMatchObject({
      outcome: 'done',
      handled: 0,
      others: 0,
    });
    expect(onOther).not.toHaveBeenCalled();
  });

  test('results without a tracker, but a tracker that was read separately → handled with its key', async () => {
    const { inbox, onEvent } = await makeWays();
    const events = [{ eventId: 'e1' }];
    const update = { tracking: { tracker: null, events }, tracker: { trackerId: 't1' }, newEvents: events };
    await inbox.processResults(byHand(update), onEvent);
    expect(onEvent.mock.lastCall?.[1].key).toBe('tracking/events:t1:e1');
  });

  test('results with a tracker, and a record that was read separately → the message has the tracker of the results', async () => {
    const { inbox, onEvent } = await makeWays();
    const events = [{ eventId: 'e1' }];
    const tracker = { trackerId: 't1', isTracked: null };
    const update = {
      tracking: { tracker, events },
      tracker: { trackerId: 't1', isTracked: true },
      newEvents: [],
    };
    await inbox.processResults(byHand(update), onEvent);
    expect(onEvent.mock.lastCall?.[1].message.tracker).toEqual(tracker);
  });
});

describe('results that cannot be handled', () => {
  const perCall = { shipment: {}, events: [{ eventId: 'e1' }], statistics: {} };

  test.each<[string, unknown, RegExp]>([
    ['results of `tracking.search`', perCall, /^The results have no `tracker`, so .*`tracking\.search`$/],
    ['results with a null tracker', { ...perCall, tracker: null }, /^The results have no `tracker`/],
    ['an update without a tracker', { tracking: perCall, newEvents: [] }, /^The results have no `tracker`/],
    [
      'a list whose second results have no tracker',
      [buildTracking(), perCall],
      /^The results have no `tracker`/,
    ],
    ['text', 'no results', /^Expected `results` to be a result of .*, got a string of 10 characters$/],
    ['nothing', undefined, /^Expected `results` to be a result of .*, got undefined$/],
    [
      'the body of a webhook',
      E1,
      /, got an object without `events`; pass the body of a webhook to `process`$/,
    ],
  ])('%s → WebhookParseError, and nothing is called', async (_title, results, message) => {
    const { inbox, onEvent } = await makeWays();
    const processing = inbox.processResults(byHand(results), onEvent);
    await expect(processing).rejects.toThrow(message);
    await expect(processing).rejects.toMatchObject({ name: 'WebhookParseError' });
    expect(onEvent).not.toHaveBeenCalled();
  });

  test('the response of `tracking.search` itself → WebhookParseError', async () => {
    const fake = createFakeTrackingService({ plans: { perShipment: false, perCall: true } });
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
    const results = await client.tracking.search({ trackingNumber: NUMBER });
    const { inbox, onEvent } = await makeWays();
    for (const given of [results, results[0]]) {
      await expect(inbox.processResults(byHand(given), onEvent)).rejects.toThrow(/results/);
    }
  });

  test('an event without a valid id → the other events are handled, outcome rejected, and onError names a tracking result', async () => {
    const { inbox, onError, onEvent } = await makeWays();
    const results = { tracker: { trackerId: 't1' }, events: [{ eventId: 5 }, { eventId: 'e2' }] };
    expect(await inbox.processResults(byHand(results), onEvent)).toMatchObject({
      outcome: 'rejected',
      handled: 1,
    });
    expect(onError.mock.calls).toEqual([
      [
        expect.objectContaining({
          message: expect.stringMatching(
            /^A tracking result is invalid, and .*`events\[0\]\.eventId` to be a string/,
          ),
        }),
        { operation: 'parse', keys: [] },
      ],
    ]);
  });

  test.each<[string, unknown]>([
    ['text', '2026-03-04T17:12:57.000Z'],
    ['an invalid Date', new Date('soon')],
    ['a number', 0],
  ])('receivedAt that is %s → ConfigurationError', async (_title, receivedAt) => {
    const { inbox, onEvent } = await makeWays();
    // The wrong types on purpose: JavaScript callers have no compiler.
    const processing = inbox.process({}, onEvent, { receivedAt: receivedAt as never });
    await expect(processing).rejects.toThrow(/^Expected `receivedAt` to be a valid Date, got /);
  });
});

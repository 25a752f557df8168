import { describe, expect, test } from 'vitest';
import { type TrackerToPoll, TrackingClient } from '../../../src/index.ts';
import { createFakeTrackingService, createWebhookSender } from '../../../src/testing/index.ts';
import { createWebhookHandler } from '../../../src/webhooks/index.ts';
import { TRACKER } from '../../contract/support/samples.ts';
import { pass, polledService, results, startPoll, startPollMany } from '../polled-service.ts';

const toKey = (eventId: string) => `tracking/events:${TRACKER.trackerId}:${eventId}`;
const withoutRecord =
  (...eventIds: string[]) =>
  () => ({
    body: { data: { trackings: [{ events: eventIds.map((eventId) => ({ eventId })) }] } },
  });

describe('keys of an update', () => {
  test.each([
    [undefined, 'tracking/events:order%3A1:a'],
    ['trackerId', 'tracking/events:order%3A1:a'],
    ['clientTrackerId', 'tracking/events:%client=order%3A1:a'],
  ] as const)('results without a tracker record, searchBy %s → the polled id', async (searchBy, key) => {
    const { client } = polledService(withoutRecord('a'));
    const stream = client.trackers.poll('order:1', { initialDelayMs: 0, searchBy });
    expect(await stream.next()).toMatchObject({ value: { keys: [key] } });
    await stream.return();
  });

  test('an event that is pushed and polled → the same key', async () => {
    const fake = createFakeTrackingService({ resultsDelayMs: 0 });
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    const { trackerId, trackingNumber } = await client.trackers.create({ trackingNumber: 'RR123456785CN' });
    fake.shipment(trackingNumber).addEvent({}, {}).deliver();
    const pushed = new Map<unknown, string>();
    const handler = createWebhookHandler({
      secret: false,
      onEvent: ({ eventId }, { key }) => void pushed.set(eventId, key),
    });
    await createWebhookSender({ target: handler, fake }).flush();
    for await (const { newEvents, keys } of client.trackers.poll(trackerId, { initialDelayMs: 0 })) {
      expect(new Map(newEvents.map(({ eventId }, index) => [eventId, keys[index]]))).toEqual(pushed);
      break;
    }
    expect(pushed.size).toBeGreaterThan(2);
  });
});

describe('knownKeys', () => {
  test('keys of an earlier run → their events are not new, however often they come', async () => {
    const histories = [['a', 'b'], ['b'], ['c', 'a', 'b']];
    const knownKeys = [toKey('a'), toKey('gone')];
    const { reading } = startPoll((poll) => results(histories[poll - 1] ?? []), { knownKeys });
    await pass(3000);
    expect(reading.items.map(({ keys }) => keys)).toEqual([[toKey('b')], [], [toKey('c')]]);
  });

  test('a set that the caller changes while polling → the keys at the time of the call', async () => {
    const knownKeys = new Set([toKey('a')]);
    const { reading } = startPoll(() => results(['a', 'b']), { knownKeys });
    knownKeys.clear();
    await pass(1000);
    expect(reading.items[0]?.keys).toEqual([toKey('b')]);
  });

  test('trackers with keys and delays of their own → used for each, also for an added tracker', async () => {
    const trackers: TrackerToPoll[] = [
      { id: 'late', initialDelayMs: 500, knownKeys: [toKey('a')] },
      { id: 'now', initialDelayMs: 0 },
    ];
    const { stream, reading, listStarts } = startPollMany(() => results(['a', 'b']), trackers);
    await pass(700);
    stream.add({ id: 'added', initialDelayMs: 100, knownKeys: [toKey('b')] });
    await pass(100);
    expect([listStarts('now'), listStarts('late'), listStarts('added')]).toEqual([[0], [500], [800]]);
    expect(reading.items.map(({ id, keys }) => [id, keys])).toEqual([
      ['now', [toKey('a'), toKey('b')]],
      ['late', [toKey('b')]],
      ['added', [toKey('a')]],
    ]);
  });

  test.each([
    ['text', 'a string of 4 characters'],
    [5, 'a number'],
    [['a', 5], 'an iterable with the item 5'],
    [{}, 'an object'],
  ])('knownKeys %j → ConfigurationError', async (knownKeys, got) => {
    const { client } = polledService(() => results([]));
    const message = `Expected \`knownKeys\` to be an iterable of strings, got ${got}`;
    // @ts-expect-error -- only an iterable of strings is valid
    expect(() => client.trackers.poll('tracker-1', { knownKeys })).toThrow(message);
    // @ts-expect-error -- `pollMany` takes the keys of each tracker
    const many = () => client.trackers.pollMany([], { knownKeys });
    expect(many).toThrow('`knownKeys`');
  });

  test.each([
    ['an unknown option', { id: 'a', intervalMs: 5000 }, 'ConfigurationError', '`tracker.intervalMs`'],
    ['a wrong delay', { id: 'a', initialDelayMs: -1 }, 'ConfigurationError', '`tracker.initialDelayMs`'],
    ['an impossible id', { id: '..' }, 'RequestValidationError', '`id`'],
    ['null', null, 'ConfigurationError', '`tracker`'],
  ])('pollMany, %s → an update with the error, and the other trackers go on', async (_, bad, name, text) => {
    // @ts-expect-error -- programs without types give anything
    const { reading } = startPollMany(() => results([]), [bad, 'good']);
    await pass(1000);
    const message = expect.stringContaining(text);
    expect(reading.items).toMatchObject([{ error: { name, message } }, { id: 'good', poll: 1 }]);
  });
});

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { createFakeTrackingService, type FakeTrackingService } from '../../src/testing/index.ts';
import { MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { makeFake, NUMBER, OTHER_NUMBER } from './make-fake.ts';

describe('two fakes', () => {
  it('a tracker, an event, a courier and a failure in one fake → none of them in the other', async () => {
    const [first, second] = [makeFake(), makeFake()];
    await first.create();
    first.fake.shipment(NUMBER).deliver();
    first.fake.couriers.pop();
    first.fake.fail('*', { status: 500 });
    const { couriers, trackers, requests, webhooks } = second.fake;
    expect([trackers, requests, webhooks.history, couriers.length]).toEqual([[], [], [], 8]);
    expect(second.fake.shipment(NUMBER).events).toEqual([]);
    expect((await second.create()).status).toBe(201);
  });

  it.each([
    ['the same seed', 1, 0],
    ['another seed', 'second', 2],
  ])(
    'two fakes with %s and one inbox → events of the second fake that it handles: $2',
    async (_, seed, handled) => {
      const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
      const counts: number[] = [];
      for (const options of [{}, { seed }]) {
        const { fake, create } = makeFake(options);
        await create();
        fake.shipment(NUMBER).addEvent().deliver();
        let count = 0;
        for (const { item } of fake.webhooks.take())
          count += (await inbox.process({ trackings: [item] }, () => {})).handled;
        counts.push(count);
      }
      expect(counts).toEqual([2, handled]);
    },
  );

  it('the same seed and the same requests → identical responses, ids included', async () => {
    const story = async (seed: number) => {
      const { fake, create, track } = makeFake({ seed });
      const first = await create();
      fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
      const second = await track();
      return [first.text, second.text, first.headers.get('x-request-id'), fake.webhooks.history];
    };
    expect(await story(7)).toEqual(await story(7));
    expect(await story(7)).not.toEqual(await story(8));
  });
});

describe('fake.reset', () => {
  it('a fake that was used → the same as a new fake, also its ids and kept shipment objects', async () => {
    const { fake, create, call } = makeFake({ limits: {}, plans: { perShipment: { quota: 2 } } });
    const first = await create();
    await call('POST', '/trackers/bulk', [{ trackingNumber: OTHER_NUMBER }]);
    fake.play(NUMBER, 'delivered');
    fake.fail('*', { status: 500, times: 5 });
    fake.couriers.pop();
    const shipment = fake.shipment(NUMBER);
    fake.reset();
    expect([fake.requests, fake.trackers, fake.webhooks.history]).toEqual([[], [], []]);
    expect([shipment.events, fake.couriers.length]).toEqual([[], 8]);
    const again = await create();
    expect(again.text).toBe(first.text);
    expect(again.headers.get('ratelimit-remaining')).toBe('9');
    expect((await call('POST', '/trackers/bulk', [{ trackingNumber: OTHER_NUMBER }])).status).toBe(201);
  });
});

describe('the clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 10, 12) });
  });
  const headers = { authorization: 'Bearer key' };

  it('fake timers installed after the fake was made → its clock follows them', async () => {
    vi.useRealTimers();
    const fake = createFakeTrackingService();
    vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
    const response = await fake.fetch(`${fake.baseUrl}/couriers`, { headers });
    expect(response.headers.get('date')).toBe('Tue, 01 Jan 2030 00:00:00 GMT');
  });

  it('advanced timers → scenarios go on, and limit windows end', async () => {
    const fake = createFakeTrackingService();
    const shipment = fake.play(NUMBER, 'delivered');
    const status = async () => (await fake.fetch(`${fake.baseUrl}/couriers`, { headers })).status;
    expect([await status(), await status()]).toEqual([200, 429]);
    vi.advanceTimersByTime(5 * 3_600_000);
    expect([await status(), shipment.events.length]).toEqual([200, 2]);
  });

  it('a request without a body, and one to an unknown path → no body in `requests`, and `latencyMs` is not asked', async () => {
    const latencyMs = vi.fn(() => 0);
    const fake = createFakeTrackingService({ latencyMs, historyLimit: Number.POSITIVE_INFINITY });
    const headers = { authorization: `Bearer ${fake.apiKey}` };
    await fake.fetch(`${fake.baseUrl}/couriers`, { headers });
    await fake.fetch(`${fake.baseUrl}/nowhere`, { headers });
    expect(fake.requests.map(({ body, error }) => [body, error?.code])).toEqual([
      [undefined, undefined],
      [undefined, expect.any(String)],
    ]);
    expect(latencyMs.mock.calls).toEqual([['couriers.list']]);
  });

  async function expectLatency(fake: FakeTrackingService, latencyMs: number): Promise<void> {
    const onResponse = vi.fn();
    const response = fake.fetch(`${fake.baseUrl}/couriers`, { headers }).then(onResponse);
    await vi.advanceTimersByTimeAsync(latencyMs - 1);
    expect(onResponse).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await response;
  }

  it('latencyMs of an endpoint → its response takes that long, other endpoints need no timer', async () => {
    const latencyMs = (endpoint: string) => (endpoint === 'couriers.list' ? 60_000 : 0);
    const fake = createFakeTrackingService({ latencyMs });
    await fake.fetch(`${fake.baseUrl}/trackers?page=1&limit=1`, { headers });
    expect(vi.getTimerCount()).toBe(0);
    await expectLatency(fake, 60_000);
  });

  it('latencyMs as a number → the response of each endpoint takes that long', async () => {
    await expectLatency(createFakeTrackingService({ latencyMs: 500 }), 500);
  });

  it('an abort during the latency → rejects at once with the reason', async () => {
    const fake = createFakeTrackingService({ latencyMs: 60_000 });
    const controller = new AbortController();
    const call = fake.fetch(`${fake.baseUrl}/couriers`, { headers, signal: controller.signal });
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });
});

describe('createFakeTrackingService with invalid options', () => {
  it.each([
    ['21 keys', { apiKeys: Array.from({ length: 21 }, (_, index) => `key-${index}`) }],
    ['a key with a space', { apiKeys: ['a b'] }],
    ['a base URL without a scheme', { baseUrl: 'localhost:4010/v1' }],
    ['a speed below 1', { speed: 0.5 }],
    ['a misspelt option', { limit: false }],
    ['an onRequest that is not a function', { onRequest: 5 }],
    ['a seed that is an object', { seed: {} }],
  ])('%s → ConfigurationError', (_, options) => {
    // A caller without types could pass this.
    const create = createFakeTrackingService as (options: object) => unknown;
    expect(() => create(options)).toThrow(ConfigurationError);
  });

  it.each([
    [
      { latencyMs: 'abc' },
      'Expected `latencyMs` to be a function, or a number of milliseconds from 0 to 2147483647',
    ],
    [
      { plans: { perShipment: { quota: -1 } } },
      'Expected `plans.perShipment.quota` to be a whole number of at least 0',
    ],
    [
      { plans: { perCall: 5 } },
      'Expected `plans.perCall` to be true, false, or an object with options .quota., got a number',
    ],
    [
      { limits: { 'trackers.get': -1 } },
      'Expected `limits\\["trackers.get"\\]` to be a whole number of at least 0',
    ],
    [{ limits: { 'trackers.gett': 5 } }, 'Unknown option `limits\\["trackers.gett"\\]`; known options: '],
    [{ limits: 5 }, 'Expected `limits` to be true, false, or an object with options .trackers.create, '],
    [{ play: ['delivered', 'lost'] }, "Expected `play` to be one of .*, or an array of these, got 'lost'"],
  ])('%j → a message that names the valid values', (options, message) => {
    // A caller without types could pass this.
    const create = createFakeTrackingService as (options: object) => unknown;
    expect(() => create(options)).toThrow(new RegExp(`^${message}`));
  });

  it('a misspelt option of listen → rejects with the known options', async () => {
    const listen = Reflect.apply(createFakeTrackingService().listen, undefined, [{ prot: 4010 }]);
    await expect(listen).rejects.toThrow(/`prot`.*port, host, control/);
  });
});

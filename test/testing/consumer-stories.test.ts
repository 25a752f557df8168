import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TrackingClient } from '../../src/index.ts';
import { createFakeTrackingService, createWebhookSender } from '../../src/testing/index.ts';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';

const NUMBER = 'RR123456785CN';

function makeApp() {
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  return { fake, client };
}

describe('what a consumer tests in a few lines', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a 429 in between → the call succeeds after the wait', async () => {
    const { fake, client } = makeApp();
    fake.fail('trackers.create', { status: 429, retryAfter: 2 });
    const created = client.trackers.create({ trackingNumber: NUMBER }).withResponse();
    await vi.advanceTimersByTimeAsync(5000);
    expect((await created).attempts).toBe(2);
    expect(fake.requests.map(({ status }) => status)).toEqual([429, 201]);
  });

  it('duplicated and shuffled webhooks → each event is handled once', async () => {
    const { fake, client } = makeApp();
    await client.trackers.create({ trackingNumber: NUMBER });
    const handled: (string | null | undefined)[] = [];
    const target = createWebhookHandler({
      secret: 'hush',
      inbox: new WebhookInbox({ store: new MemoryDedupeStore() }),
      onEvent: (event) => {
        handled.push(event.statusMilestone);
      },
    });
    fake.shipment(NUMBER).addEvent().deliver();
    const sender = createWebhookSender({ target, secret: 'hush', fake, duplicates: 2, shuffle: true });
    const report = sender.flush();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await report).toMatchObject({ items: 2, accepted: 2, lost: 0 });
    expect(handled.sort()).toEqual(['delivered', 'in_transit']);
  });

  it('a shipment that is delivered and given up → the poller stops', async () => {
    const { fake, client } = makeApp();
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    fake.play(NUMBER, 'delivered');
    const last = client.trackers.waitUntilStopped(trackerId, { intervalMs: 3_600_000 });
    await vi.advanceTimersByTimeAsync(4 * 86_400_000);
    expect((await last).tracker?.isTracked).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('archived while it is polled by its clientTrackerId → the poll ends', async () => {
    const { fake, client } = makeApp();
    const byClientId = { searchBy: 'clientTrackerId' } as const;
    await client.trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-7' });
    fake.shipment(NUMBER).addEvent();
    const last = client.trackers.waitUntilStopped('order-7', { ...byClientId, intervalMs: 60_000 });
    await vi.advanceTimersByTimeAsync(90_000);
    await client.trackers.update('order-7', { isSubscribed: false }, byClientId);
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await last).tracker).toMatchObject({ isSubscribed: false, isTracked: false });
  });

  it('a response that is lost after the work was done → the import asks again and finds it done', async () => {
    const { fake, client } = makeApp();
    fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
    const statuses: string[] = [];
    const run = (async () => {
      const inputs = [{ trackingNumber: NUMBER }, { trackingNumber: 'LA680658838NL' }];
      for await (const { status } of client.trackers.createMany(inputs, { retryAmbiguous: true }))
        statuses.push(status);
    })();
    await vi.advanceTimersByTimeAsync(60_000);
    await run;
    expect(statuses).toEqual(['existing', 'existing']);
    expect(fake.trackers).toHaveLength(2);
  });
});

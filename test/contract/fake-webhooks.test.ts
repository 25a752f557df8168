import { createWebhookSender } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { advance, contractFake, DAY_MS, HOUR_MS, NUMBER } from './support/contract-fake.ts';
import { at } from './support/reach.ts';
import { contractReceiver, SECRET } from './support/receiver.ts';

function failing(headers: HeadersInit = {}): Response {
  return new Response(null, { status: 503, headers });
}

describe('every webhook keeps the contract', () => {
  test.each(['delivered', 'exception', 'customs'] as const)('the play "%s" → every push', async (play) => {
    const { fake, createFetched } = contractFake({ play, speed: 1000 });
    const { target, received } = contractReceiver();
    const id = await createFetched({ clientTrackerId: 'order-1042', shipmentReference: 'basket 7' });
    await advance(HOUR_MS);
    await createWebhookSender({ target, secret: SECRET, fake }).flush();
    expect(received.length).toBeGreaterThan(3);
    expect(new Set(received.map(({ body }) => at(body, 'trackings', 0, 'tracker', 'trackerId')))).toEqual(
      new Set([id]),
    );
  });

  test.each([
    ['duplicates and shuffle', { duplicates: 2, shuffle: true }],
    ['many items a request', { itemsPerRequest: 10 }],
  ])('%s → every push', async (_name, options) => {
    const { fake, createFetched } = contractFake();
    const { target, received } = contractReceiver();
    await createFetched();
    await createFetched({ courierCode: 'us-post' });
    fake.shipment(NUMBER).addEvent().deliver().proveDelivery();
    await createWebhookSender({ target, secret: SECRET, fake, ...options }).flush();
    expect(received).not.toEqual([]);
  });

  test('flat → ids and events at the top', async () => {
    const { fake, createFetched } = contractFake();
    const { target, received } = contractReceiver(undefined, 'webhook-flat');
    const trackerId = await createFetched({ clientTrackerId: 'order-1042' });
    fake.shipment(NUMBER).addEvent();
    await createWebhookSender({ target, secret: SECRET, fake, shape: 'flat' }).flush();
    expect(received).toMatchObject([{ body: { trackerId, clientTrackerId: 'order-1042' } }]);
  });

  test('a resend → every push again', async () => {
    const { fake, client, createFetched } = contractFake();
    const { target, received } = contractReceiver();
    const id = await createFetched();
    fake.shipment(NUMBER).deliver().proveDelivery();
    const sender = createWebhookSender({ target, secret: SECRET, fake });
    await sender.flush();
    await client.trackers.resendWebhookEvents(id);
    await sender.flush();
    expect(received).toHaveLength(4);
  });
});

describe('the schedule of the sender', () => {
  /** A push that is never taken, and when each attempt came. */
  async function attemptsOf(answer: () => Response): Promise<number[]> {
    const { fake, createFetched } = contractFake();
    const { target, received } = contractReceiver(answer);
    await createFetched();
    fake.shipment(NUMBER).addEvent();
    const until2xx = { speed: 1 };
    void createWebhookSender({ target, secret: SECRET, fake, until2xx }).flush();
    await advance(14 * DAY_MS);
    return received.map(({ receivedAtMs }) => receivedAtMs);
  }

  function waitsOf(times: readonly number[]): number[] {
    return times.slice(1).map((time, index) => time - (times[index] ?? 0));
  }

  test('a receiver that never takes it → 20 attempts over about six days, with waits that do not shrink', async () => {
    const times = await attemptsOf(() => failing());
    expect(times).toHaveLength(20);
    const days = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / DAY_MS;
    expect(Math.round(days)).toBe(6);
    const waits = waitsOf(times);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  });

  test('Retry-After of an hour → no attempt comes earlier', async () => {
    const waits = waitsOf(await attemptsOf(() => failing({ 'retry-after': '3600' })));
    expect(waits.length).toBeGreaterThan(0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(HOUR_MS);
  });
});

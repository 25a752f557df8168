import { TrackingClient } from '../../src/index.ts';
import { createFakeTrackingService, createWebhookSender } from '../../src/testing/index.ts';
import type { Figure } from '../report.ts';
import { formatCount } from '../statistics.ts';

const MAX_RATIO = 2;
const HOUR_MS = 3_600_000;

/**
 * Creates trackers of a fake service that plays a scenario for each, lets all events happen, and sends the webhooks.
 *
 * @returns the processor time of one tracker in milliseconds
 */
async function playAll(count: number): Promise<number> {
  let nowMs = Date.UTC(2026, 2, 10);
  const fake = createFakeTrackingService({ play: 'delivered', limits: false, now: () => nowMs });
  const client = new TrackingClient({
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch: fake.fetch,
    rateLimit: false,
  });
  const before = process.cpuUsage();
  for (let created = 0; created < count; created += 100) {
    nowMs += 10_000;
    await client.trackers.createBulk(
      Array.from({ length: 100 }, (_, index) => ({ trackingNumber: `LP${100_000_000 + created + index}CN` })),
    );
  }
  nowMs += 100 * HOUR_MS;
  await createWebhookSender({ fake, target: () => new Response() }).flush();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / count;
}

/** Compares the cost of one tracker in a small and in a large fake service. */
export async function measureFake(small: number, large: number): Promise<Figure> {
  await playAll(small); // warms up
  const costs = [await playAll(small), await playAll(large)] as const;
  const ratio = costs[1] / costs[0];
  return {
    name: `the fake service with ${formatCount(large)} trackers that play a scenario`,
    target: `<= ${MAX_RATIO}x the processor time of a tracker among ${formatCount(small)}`,
    isReached: ratio <= MAX_RATIO,
    found: `${ratio.toFixed(2)}x (${costs[1].toFixed(2)} ms for ${costs[0].toFixed(2)} ms)`,
  };
}

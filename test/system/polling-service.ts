// A fake service in a process of its own, for workers that poll it. It sends its URL and the ids of its trackers, and answers each
// message with its counts. Usage: polling-service.ts TRACKERS LIMIT LATENCY_MS
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

/** What the process sends when it is ready. */
export interface ReadyService {
  readonly url: string;
  readonly apiKey: string;
  readonly trackerIds: readonly string[];
}

/** What the process answers to a message. */
export interface ServiceCounts {
  /** Responses with 429. */
  readonly refused: number;
  /** The number of requests for the results of each tracker. */
  readonly polls: Readonly<Record<string, number>>;
}

const [trackers = 0, limit = 10, latencyMs = 0] = process.argv.slice(2).map(Number);
const polls: Record<string, number> = {};
let refused = 0;
const fake = createFakeTrackingService({
  resultsDelayMs: 0,
  latencyMs: (endpoint) => (endpoint === 'trackers.results' ? latencyMs : 0),
  limits: { 'trackers.results': limit, 'trackers.get': limit, 'trackers.createBulk': 10_000 },
  limitWindow: 'sliding',
  historyLimit: 1,
  onRequest: ({ endpoint, path, status }) => {
    if (status === 429) refused += 1;
    const [, id] = /trackers\/([^/]+)\/results$/.exec(path) ?? [];
    if (endpoint === 'trackers.results' && id !== undefined) polls[id] = (polls[id] ?? 0) + 1;
  },
});
const client = new TrackingClient({
  baseUrl: fake.baseUrl,
  apiKey: fake.apiKey,
  fetch: fake.fetch,
  rateLimit: false,
});
const inputs = Array.from({ length: trackers }, (_, index) => ({
  trackingNumber: `RR${String(100_000_000 + index)}CN`,
}));
const trackerIds: string[] = [];
for await (const { tracker, input } of client.trackers.createMany(inputs)) {
  trackerIds.push(tracker?.trackerId ?? '');
  const shipment = fake
    .shipment(input.trackingNumber)
    .addEvent({ status: 'Accepted' })
    .addEvent({ status: 'Arrived' });
  // The service has stopped tracking every fourth shipment.
  if (trackerIds.length % 4 === 0) shipment.stopTracking();
}
const server = await fake.listen();
process.on('message', () => process.send?.({ refused, polls } satisfies ServiceCounts));
process.on('disconnect', () => process.exit());
process.send?.({ url: server.url, apiKey: fake.apiKey, trackerIds } satisfies ReadyService);

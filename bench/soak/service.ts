import { TrackingClient } from '../../src/index.ts';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
  type RecordedRequest,
} from '../../src/testing/index.ts';
import type { Outage } from './audit.ts';
import { INBOXES, pick, SENT_AT_HEADER, steadyNow } from './task.ts';

export const TRACKERS = 2_000;
export const LIMIT_PER_SECOND = 50;
export const SECRET = 'secret-of-the-soak';
const EVENTS_IN_A_WEBHOOK = 2;
/** The fake remembers this many requests and webhooks. */
const HISTORY = 1_000;
const WINDOW_MS = 1_000;
const MAX_ATTEMPTS = 1_000;
/** The limiter keeps the limit only if the service counts a request within this time after it was sent. */
const MAX_UPLINK_MS = 500;
/** A FLUSHALL makes the limiter forget which tokens are in use; after this time, all of them are free again. */
const TOKENS_RETURN_MS = 2_500;

type Failure = Parameters<FakeTrackingService['fail']>[1];

/** Starts the service, which enforces its limit on loopback HTTP, adds events, and sends webhooks. */
export async function openService(getReceiverUrls: () => readonly string[]) {
  /** Counts unplanned 429s: beyond the limit, after a FLUSHALL, and next to requests that were counted late. */
  const refused = { unexcused: 0, flush: 0, late: 0 };
  const counts = { requests: 0, webhooks: 0, notAccepted: 0 };
  const flushes: Outage[] = [];
  let isFailing = false;
  let arrivals: { readonly at: number; readonly isLate: boolean }[] = [];

  function noteResponse({ endpoint, headers, status }: RecordedRequest): void {
    counts.requests += 1;
    if (endpoint !== 'trackers.results') return;
    const now = steadyNow();
    arrivals = arrivals.filter(({ at }) => at > now - WINDOW_MS);
    arrivals.push({ at: now, isLate: now - Number(headers[SENT_AT_HEADER]) > MAX_UPLINK_MS });
    if (status !== 429 || isFailing) return;
    // A request that is counted late takes the place of another in the window, which the limiter cannot know.
    const inTime = arrivals.filter(({ isLate }) => !isLate).length;
    if (flushes.some(({ from, until }) => from <= now && now < until + TOKENS_RETURN_MS)) refused.flush += 1;
    else if (inTime <= LIMIT_PER_SECOND) refused.late += 1;
    else refused.unexcused += 1;
  }

  const fake = createFakeTrackingService({
    resultsDelayMs: 0,
    limitWindow: 'sliding',
    limits: { 'trackers.results': LIMIT_PER_SECOND, 'trackers.createBulk': TRACKERS },
    historyLimit: HISTORY,
    onRequest: noteResponse,
  });
  const { baseUrl, apiKey, fetch: fakeFetch } = fake;
  const client = new TrackingClient({ baseUrl, apiKey, fetch: fakeFetch });
  const inputs = Array.from({ length: TRACKERS }, (_, index) => ({
    trackingNumber: `SOAK${100_000 + index}X`,
  }));
  for await (const { status } of client.trackers.createMany(inputs))
    if (status !== 'created') throw new Error(`Expected the fake to create a tracker, got ${status}`);
  const trackerIds = fake.trackers.map(({ trackerId }) => trackerId);

  /** Webhooks report the events in `happened`, and only polls can find the events in `onlyPolled`. */
  const [happened, onlyPolled]: [string[], string[]] = [[], []];
  function addEvents(trackerId: string, keys: string[], count: number): void {
    const first = happened.length + onlyPolled.length;
    const eventIds = Array.from({ length: count }, (_, index) => `event-${first + index}`);
    fake.shipment({ trackerId }).addEvent(...eventIds.map((eventId) => ({ eventId })));
    keys.push(...eventIds.map((eventId) => `${trackerId}:${eventId}`));
  }
  for (const id of trackerIds) addEvents(id, onlyPolled, 1);
  // No receiver runs yet, so nobody gets the webhooks of these first events.
  fake.webhooks.take();

  /** Sends a webhook to every inbox, each at a random receiver; the webhook is accepted when every inbox accepts it. */
  async function sendToAll(request: Request): Promise<Response> {
    const [headers, body, urls] = [request.headers, await request.text(), getReceiverUrls()];
    const accepted = await Promise.all(
      INBOXES.map(async (inbox) => {
        counts.webhooks += 1;
        try {
          const response = await fetch(`${pick(urls)}/${inbox}`, { method: 'POST', headers, body });
          await response.arrayBuffer();
          return response.ok;
        } catch {
          // The receiver is dead or dying.
          return false;
        }
      }),
    );
    return new Response(null, { status: accepted.every(Boolean) ? 200 : 503 });
  }

  const sender = createWebhookSender({
    fake,
    secret: SECRET,
    duplicates: 1,
    shuffle: true,
    // Webhooks that wait for an unavailable inbox must not hold up the others.
    concurrency: 500,
    // The longest wait is a third of a second.
    until2xx: { speed: 130_000, maxAttempts: MAX_ATTEMPTS },
    target: sendToAll,
    onSent: ({ attempt, succeeded }) => {
      if (attempt === MAX_ATTEMPTS && !succeeded) counts.notAccepted += 1;
    },
  });
  const stopSending = sender.start();
  const server = await fake.listen();
  return {
    url: server.url,
    trackerIds,
    ...{ happened, onlyPolled, refused, counts, flushes },
    /** Adds events to a random shipment; a webhook reports them. */
    happen: () => addEvents(pick(trackerIds) ?? '', happened, EVENTS_IN_A_WEBHOOK),
    /** Resends the webhooks of a random recent event's shipment, because the fake has forgotten older webhooks. */
    resend: async () => {
      const [id = ''] = pick(happened.slice(-HISTORY))?.split(':') ?? [];
      await client.trackers.resendWebhookEvents(id);
    },
    /** Makes all calls of the limited endpoint fail until the returned function is called. */
    fail: (failure: Failure) => {
      const planned = fake.fail('trackers.results', { ...failure, times: Number.POSITIVE_INFINITY });
      isFailing = true;
      return () => {
        planned.cancel();
        isFailing = false;
      };
    },
    stopSending,
    close: () => server.close(),
  };
}

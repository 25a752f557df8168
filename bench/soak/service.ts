import { TrackingClient } from '../../src/index.ts';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeServer,
  type FakeTrackingService,
  type RecordedRequest,
} from '../../src/testing/index.ts';
import { INBOXES, MAX_UPLINK_MS, SENT_AT_HEADER, steadyNow } from './messages.ts';

export const TRACKERS = 2_000;
export const LIMIT_PER_SECOND = 50;
export const SECRET = 'secret-of-the-soak';
const EVENTS_IN_A_WEBHOOK = 2;
/** How many requests and webhooks the fake remembers. */
const HISTORY = 1_000;
const RESEND_AFTER_MS = 500;
const WINDOW_MS = 1_000;
/** Webhooks that wait for an inbox that is away must not hold up those of the others. */
const CONCURRENCY = 500;
/** After a FLUSHALL the limiter no longer knows which tokens are out; they are back within so long. */
const TOKENS_RETURN_MS = 2_500;

type Failure = Parameters<FakeTrackingService['fail']>[1];

/** The other side: an enforcing service on loopback HTTP, events that happen to its trackers, and its webhooks. */
export class SoakService {
  readonly url: string;
  readonly trackerIds: readonly string[];
  /** When each event happened: those that webhooks tell, and those that only polls can find. */
  readonly happened = new Map<string, number>();
  readonly onlyPolled = new Map<string, number>();
  /** Answers of 429 that nobody planned: requests beyond the limit, those right after a FLUSHALL, and where others came late. */
  readonly refused = { unexcused: 0, afterForgetting: 0, late: 0 };
  /** The longest time from the sending of a request to its being counted, in milliseconds. */
  longestUplinkMs = 0;
  /** The beginning and the end of every FLUSHALL. */
  readonly forgottenAt: number[] = [];
  readonly webhooks = { sent: 0, notAccepted: 0 };
  /** How many it got, with the few of the soak itself. */
  requests = 0;
  readonly #client: TrackingClient;
  readonly #fake: FakeTrackingService;
  readonly #server: FakeServer;
  readonly #stopSending: () => Promise<void>;
  #planned: { readonly remaining: number } | undefined;
  /** Requests of the limited endpoint within the last second. */
  #arrivals: { readonly at: number; readonly isLate: boolean }[] = [];

  private constructor(fake: FakeTrackingService, server: FakeServer, receiverUrls: () => readonly string[]) {
    this.#fake = fake;
    this.#client = clientOf(fake);
    this.#server = server;
    this.url = server.url;
    this.trackerIds = fake.trackers.map(({ trackerId }) => trackerId);
    // What the trackers begin with is no webhook: there is no receiver yet.
    for (const id of this.trackerIds) this.#addEvents(id, this.onlyPolled, 1);
    fake.webhooks.take();
    const sender = createWebhookSender({
      fake,
      secret: SECRET,
      duplicates: 1,
      shuffle: true,
      concurrency: CONCURRENCY,
      until2xx: { delayMs: RESEND_AFTER_MS, maxAttempts: 1_000 },
      target: (request) => this.#sendToAll(request, receiverUrls()),
    });
    this.#stopSending = sender.start({
      onReport: ({ lost }) => {
        this.webhooks.notAccepted += lost;
      },
    });
  }

  static async open(receiverUrls: () => readonly string[]): Promise<SoakService> {
    let service: SoakService | undefined;
    const fake = createFakeTrackingService({
      resultsDelayMs: 0,
      limitWindow: 'sliding',
      limits: { 'trackers.results': LIMIT_PER_SECOND, 'trackers.createBulk': TRACKERS },
      historyLimit: HISTORY,
      onRequest: (request) => service?.noteAnswer(request),
    });
    const inputs = Array.from({ length: TRACKERS }, (_, index) => ({
      trackingNumber: `SOAK${100_000 + index}X`,
    }));
    for await (const { status } of clientOf(fake).trackers.createMany(inputs))
      if (status !== 'created') throw new Error(`Expected the fake to create a tracker, got ${status}`);
    service = new SoakService(fake, await fake.listen(), receiverUrls);
    return service;
  }

  /** Something happens to a random shipment, and a webhook tells of it. */
  happen(): void {
    const id = this.trackerIds[Math.floor(Math.random() * this.trackerIds.length)] ?? '';
    this.#addEvents(id, this.happened, EVENTS_IN_A_WEBHOOK);
  }

  /** Tells the events of a shipment again, as the service does when it is asked to. */
  async tellAgain(): Promise<void> {
    // Of older ones the fake has forgotten the webhooks.
    const told = [...this.happened.keys()].slice(-HISTORY);
    const [id = ''] = told[Math.floor(Math.random() * told.length)]?.split(':') ?? [];
    await this.#client.trackers.resendWebhookEvents(id);
  }

  /** Makes all calls of the limited endpoint fail until it is cancelled. */
  fail(failure: Failure) {
    const planned = this.#fake.fail('trackers.results', { ...failure, times: Number.POSITIVE_INFINITY });
    this.#planned = planned;
    return planned;
  }

  noteAnswer({ endpoint, headers, status }: RecordedRequest): void {
    this.requests += 1;
    if (endpoint !== 'trackers.results') return;
    const now = steadyNow();
    const uplinkMs = now - Number(headers[SENT_AT_HEADER]);
    this.longestUplinkMs = Math.max(this.longestUplinkMs, uplinkMs);
    this.#arrivals = this.#arrivals.filter(({ at }) => at > now - WINDOW_MS);
    this.#arrivals.push({ at: now, isLate: uplinkMs > MAX_UPLINK_MS });
    // While a 429 is planned, every answer is that one.
    if (status !== 429 || (this.#planned?.remaining ?? 0) > 0) return;
    const isForgotten = this.forgottenAt.some((time) => time <= now && now < time + TOKENS_RETURN_MS);
    // The limiter promises nothing for requests that take longer than it was told: they take the place of others.
    const inTime = this.#arrivals.filter(({ isLate }) => !isLate).length;
    if (isForgotten) this.refused.afterForgetting += 1;
    else if (inTime <= LIMIT_PER_SECOND) this.refused.late += 1;
    else this.refused.unexcused += 1;
  }

  /** Sends what is left, until all of it is accepted. */
  stopSending(): Promise<void> {
    return this.#stopSending();
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #addEvents(id: string, noted: Map<string, number>, count: number): void {
    const first = this.onlyPolled.size + this.happened.size;
    const eventIds = Array.from({ length: count }, (_, index) => `event-${first + index}`);
    this.#fake.shipment({ trackerId: id }).addEvent(...eventIds.map((eventId) => ({ eventId })));
    for (const eventId of eventIds) noted.set(`${id}:${eventId}`, steadyNow());
  }

  /** Each webhook goes to every inbox, each time at a random receiver; it counts as accepted when all three took it. */
  async #sendToAll(request: Request, urls: readonly string[]): Promise<Response> {
    const [headers, body] = [request.headers, await request.text()];
    const accepted = await Promise.all(
      INBOXES.map(async (inbox) => {
        const url = urls[Math.floor(Math.random() * urls.length)];
        this.webhooks.sent += 1;
        try {
          const response = await fetch(`${url}/${inbox}`, { method: 'POST', headers, body });
          await response.arrayBuffer();
          return response.ok;
        } catch {
          // Its receiver is dead, or dying.
          return false;
        }
      }),
    );
    return new Response(null, { status: accepted.every(Boolean) ? 200 : 503 });
  }
}

/** Straight into the fake: what the soak itself needs is not what it looks at. */
function clientOf({ baseUrl, apiKey, fetch }: FakeTrackingService): TrackingClient {
  return new TrackingClient({ baseUrl, apiKey, fetch });
}

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { SECRET } from './receiver-config.ts';

/** If no webhook was accepted for so long, something is wrong for good. */
const GIVE_UP_AFTER_MS = 60_000;
const RETRY_PAUSE_MS = 50;

/** Options of the traffic. */
export interface Traffic {
  /** How many different events. */
  readonly events: number;
  /** Number of the first event. Default: 0. */
  readonly firstEvent?: number;
  /** How often each of them is delivered. */
  readonly copies: number;
  /** The most events that one webhook holds. */
  readonly perWebhook: number;
  /** How many webhooks are under way at once. */
  readonly concurrency: number;
}

/** The result of the traffic. */
export interface SendReport {
  readonly webhooks: number;
  /** Requests by status; `0` counts requests without a response, because their receiver was killed. */
  readonly responses: Readonly<Record<number, number>>;
  readonly elapsedMs: number;
}

/** Builds the key under which a receiver remembers an event of this traffic. */
export function buildKey(event: number): string {
  return `tracking/events:tracker-${event % 100}:event-${event}`;
}

/**
 * Delivers every event several times, in random webhooks to random receivers, and sends each webhook until the response is a 2xx.
 *
 * @param listUrls - where receivers listen right now
 * @param onAccepted - called with the share of accepted webhooks, 0 to 1
 */
export async function sendTraffic(
  traffic: Traffic,
  listUrls: () => readonly string[],
  onAccepted: (share: number) => void = () => {},
): Promise<SendReport> {
  const startedAt = performance.now();
  const webhooks = buildWebhooks(traffic);
  const total = webhooks.length;
  const responses: Record<number, number> = {};
  const agent = new Agent({ keepAlive: true, maxSockets: traffic.concurrency });
  let accepted = 0;
  let acceptedAt = startedAt;
  const sendNext = async (): Promise<void> => {
    for (let body = webhooks.pop(); body !== undefined; body = webhooks.pop()) {
      let status = 0;
      while (status < 200 || status > 299) {
        if (performance.now() - acceptedAt > GIVE_UP_AFTER_MS)
          throw new Error(`Still refused with ${status}`);
        status = await post(agent, pickRandom(listUrls()), body);
        responses[status] = (responses[status] ?? 0) + 1;
        if (status < 200 || status > 299) await sleep(RETRY_PAUSE_MS);
      }
      accepted += 1;
      acceptedAt = performance.now();
      onAccepted(accepted / total);
    }
  };
  try {
    await Promise.all(Array.from({ length: traffic.concurrency }, sendNext));
  } finally {
    agent.destroy();
  }
  return { webhooks: total, responses, elapsedMs: performance.now() - startedAt };
}

function buildWebhooks({ events, firstEvent = 0, copies, perWebhook }: Traffic): string[] {
  const shuffled = Array.from({ length: events * copies }, (_, index) => ({
    item: buildItem(firstEvent + (index % events)),
    place: Math.random(),
  })).sort((a, b) => a.place - b.place);
  const webhooks: string[] = [];
  while (shuffled.length > 0) {
    const some = shuffled.splice(0, 1 + Math.floor(Math.random() * perWebhook));
    webhooks.push(JSON.stringify({ trackings: some.map(({ item }) => item) }));
  }
  return webhooks;
}

function buildItem(event: number) {
  const eventId = `event-${event}`;
  return {
    metadata: { topic: 'tracking/events', messageId: `message-${event}` },
    tracker: { trackerId: `tracker-${event % 100}`, trackingNumber: '9400115901047177598206' },
    events: [{ eventId, occurrenceDatetime: '2021-03-04T17:12:57', statusMilestone: 'in_transit' }],
  };
}

export function pickRandom<T>(items: readonly T[]): T | undefined {
  return items[Math.floor(Math.random() * items.length)];
}

/** Resolves to the status, or to 0 if no response came. */
function post(agent: Agent, url: string | undefined, body: string): Promise<number> {
  if (url === undefined) return Promise.resolve(0);
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${SECRET}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', () => resolve(0));
    });
    sent.on('error', () => resolve(0));
    sent.end(body);
  });
}

import { createServer } from 'node:http';
import { isNewerEvent, parseOccurrenceDatetime, sortEvents } from 'tracking-client/events';
import {
  buildEventKey,
  type Claim,
  createWebhookHandler,
  type DedupeStore,
  MemoryDedupeStore,
  parseWebhook,
  toNodeHandler,
  type WebhookEvent,
  type WebhookHandler,
  WebhookInbox,
  type WebhookMessage,
  type WebhookReport,
} from 'tracking-client/webhooks';

const store: DedupeStore = new MemoryDedupeStore({ maxKeys: 1_000 });
const inbox = new WebhookInbox({
  store,
  maxAttempts: 3,
  onDeadLetter: (event, { attempt }) => [event, attempt],
});

export const webhooks: WebhookHandler = createWebhookHandler({
  secret: ['new', 'old'],
  inbox,
  onEvent: async (event, { message, attempt, signal }) => {
    const { trackerId, clientTrackerId } = message.tracker;
    const id: string | null | undefined = trackerId ?? clientTrackerId;
    console.log(id, event.statusMilestone, attempt.toFixed(), signal.aborted);
  },
  onProofOfDelivery: ({ data }) => console.log(data?.content?.downloadUrl),
  onReport: (report: WebhookReport) => console.log(report.outcome.length),
});

export const server = createServer(toNodeHandler(webhooks));

export async function respond(request: Request): Promise<number> {
  const response: Response = await webhooks(request);
  await webhooks.close({ timeoutMs: 1_000 });
  return response.status;
}

export function read(body: Uint8Array): WebhookEvent[] {
  const { messages, rejected } = parseWebhook(body);
  console.log(rejected[0]?.index.toFixed(), rejected[0]?.issues[0]?.message.trim());
  return messages.flatMap((message: WebhookMessage) =>
    message.kind === 'events' ? sortEvents(message.events) : [],
  );
}

export async function claim(key: string): Promise<number> {
  const [first]: readonly Claim[] = await store.claim([key], { token: 'token', leaseMs: 1_000 });
  return first?.status === 'busy' ? first.retryAfterMs : 0;
}

export const key: string = buildEventKey({ trackerId: 't1' }, { eventId: 'e1' });
export const parsed = parseOccurrenceDatetime('2021-03-04T17:12:57');
export const isNewer: boolean = isNewerEvent({ order: 2 }, { order: 1 });

export function misspelt(event: WebhookEvent, report: WebhookReport): void {
  // @ts-expect-error -- `eventID`
  console.log(event.eventID);
  // @ts-expect-error -- `outcomes`
  console.log(report.outcomes);
  // @ts-expect-error -- `key`
  void new WebhookInbox({ store, key: 'key' });
  // @ts-expect-error -- the listener takes a request and a response
  void toNodeHandler(webhooks)('request');
}

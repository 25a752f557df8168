// A Hono webhook endpoint with one callback for each kind of webhook, and a place for events that keep failing.
import { Hono } from 'hono';
import {
  createWebhookHandler,
  type EventsMessage,
  MemoryDedupeStore,
  type ProofOfDelivery,
} from 'tracking-client/webhooks';

/** What your app does; both may be asynchronous. */
export interface Work {
  onNews(message: EventsMessage): unknown;
  onSignature(proof: ProofOfDelivery): unknown;
}

/** @param secrets - several count while the secret is being changed */
export function createApp(secrets: readonly string[], { onNews, onSignature }: Work) {
  const webhooks = createWebhookHandler({
    secret: secrets,
    // This store serves one process. Several processes share a RedisDedupeStore or a PostgresDedupeStore.
    store: new MemoryDedupeStore(),
    maxAttempts: 2,
    onDeadLetter: (event, { attempt }) =>
      console.log(`dead letter: event ${event?.eventId}, given up after ${attempt} attempts`),
    onError: (error) => console.log('failed:', error instanceof Error ? error.message : error),
    onEvents: onNews, // Once for each tracker, with its new events, oldest first.
    onProofOfDelivery: onSignature,
    onOther: ({ metadata }) => console.log(`nobody handles ${metadata?.topic}`),
  });
  const app = new Hono().all('/webhooks', (context) => webhooks(context.req.raw));
  // On SIGTERM call `close`: it finishes what runs, and responds with 503 to the rest.
  return { app, close: () => webhooks.close() };
}

// A Hono webhook endpoint with one callback for each kind of webhook, and one for events that keep failing.
import { Hono } from 'hono';
import {
  createWebhookHandler,
  type EventsMessage,
  MemoryDedupeStore,
  type ProofOfDelivery,
} from 'tracking-client/webhooks';

/** The work of your app; both functions may return a promise. */
export interface Work {
  onNews(message: EventsMessage): unknown;
  onSignature(proof: ProofOfDelivery): unknown;
}

/** @param secrets - the accepted secrets: the old and the new one while you change it */
export function createApp(secrets: readonly string[], { onNews, onSignature }: Work) {
  const webhooks = createWebhookHandler({
    secret: secrets,
    // This store serves one process. Several processes share a RedisDedupeStore or a PostgresDedupeStore.
    store: new MemoryDedupeStore(),
    maxAttempts: 2,
    onDeadLetter: (event, { attempt }) =>
      console.log(`dead letter: event ${event?.eventId}, given up after ${attempt} attempts`),
    onError: (error) => console.log('failed:', error instanceof Error ? error.message : error),
    onEvents: onNews, // Called once for each message, with its new events, oldest first.
    onProofOfDelivery: onSignature,
    onOther: ({ metadata }) => console.log(`no callback for topic ${metadata?.topic}`),
  });
  const app = new Hono().all('/webhooks', (context) => webhooks(context.req.raw));
  // On SIGTERM, call `close`: it finishes running work, and responds with 503 to new webhooks.
  return { app, close: () => webhooks.close() };
}

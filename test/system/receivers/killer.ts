/** A process that receives one webhook, and whose callback kills it at one of the events. */
import { createClient } from 'redis';
import { RedisDedupeStore } from '../../../src/redis/index.ts';
import { WebhookInbox } from '../../../src/webhooks/index.ts';

/** The configuration of the process, as JSON in its first argument. */
export interface KillerConfig {
  readonly serviceUrl: string;
  readonly keyPrefix: string;
  readonly leaseMs: number;
  readonly maxAttempts: number;
  readonly body: unknown;
  /** The event whose callback kills the process. */
  readonly fatalId: string;
  /** The event whose callback rejects, if any. */
  readonly failingId?: string;
}

/** What the process tells its parent, if it lives. */
export interface KillerReport {
  readonly handled: readonly unknown[];
  readonly deadLettered: readonly unknown[];
  readonly outcome: string;
}

// The test writes this argument with `JSON.stringify` of a `KillerConfig`.
const config = JSON.parse(process.argv[2] ?? '') as KillerConfig;
const redis = await createClient({ url: config.serviceUrl }).on('error', console.error).connect();
const handled: unknown[] = [];
const deadLettered: unknown[] = [];
const inbox = new WebhookInbox({
  store: new RedisDedupeStore({ redis, keyPrefix: config.keyPrefix, commandTimeoutMs: 10_000 }),
  leaseMs: config.leaseMs,
  maxAttempts: config.maxAttempts,
  onDeadLetter: (event) => void deadLettered.push(event?.eventId),
  onError: () => {},
});
const { outcome } = await inbox.process(config.body, ({ eventId }) => {
  if (eventId === config.fatalId) process.kill(process.pid, 'SIGKILL');
  if (eventId === config.failingId) throw new Error('the warehouse is closed');
  handled.push(eventId);
});
process.send?.({ handled, deadLettered, outcome } satisfies KillerReport);
await redis.close();
process.disconnect?.();

/** A receiver process whose callback waits until its parent ends it, or its signal aborts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { RedisDedupeStore } from '../../../src/redis/index.ts';
import { createWebhookHandler, toNodeHandler } from '../../../src/webhooks/index.ts';

/** The configuration of the process, as JSON in its first argument. */
export interface FreezableConfig {
  readonly serviceUrl: string;
  readonly keyPrefix: string;
  readonly leaseMs: number;
  readonly secret: string;
}

/** What the process tells its parent: that it listens, that a callback begins, and how it ended. */
export type FreezableMessage =
  | { readonly port: number }
  | { readonly began: number }
  | { readonly ended: 'done' | 'aborted' };

// The test writes this argument with `JSON.stringify` of a `FreezableConfig`.
const { serviceUrl, keyPrefix, leaseMs, secret } = JSON.parse(process.argv[2] ?? '') as FreezableConfig;
const tell = (message: FreezableMessage) => void process.send?.(message);

const webhooks = createWebhookHandler({
  secret,
  store: new RedisDedupeStore({ redis: new Redis(serviceUrl), keyPrefix }),
  leaseMs,
  onError: () => {},
  onEvent: async (_event, { attempt, signal }) => {
    tell({ began: attempt });
    await once(process, 'message', { signal }).catch(() => {});
    tell({ ended: signal.aborted ? 'aborted' : 'done' });
  },
});
const server = createServer(toNodeHandler(webhooks));
server.listen(0, '127.0.0.1', () => {
  // A server that listens on TCP has an address of this form.
  tell({ port: (server.address() as AddressInfo).port });
});
process.once('disconnect', () => process.exit());

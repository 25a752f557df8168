import { expectTypeOf, test } from 'vitest';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type WebhookHandlerOptions,
  WebhookInbox,
} from '../../src/webhooks/index.ts';

const store = new MemoryDedupeStore();
const inbox = new WebhookInbox({ store });
const onEvent = () => {};

test('a store or an inbox → compiles; both → does not compile', () => {
  expectTypeOf({ secret: 'whsec', store, leaseMs: 5_000, onEvent }).toExtend<WebhookHandlerOptions>();
  expectTypeOf({ secret: 'whsec', inbox, onEvent }).toExtend<WebhookHandlerOptions>();
  // @ts-expect-error -- the inbox has a store of its own
  const both: WebhookHandlerOptions = { secret: 'whsec', inbox, store, onEvent };
  expectTypeOf(both).not.toBeAny();
});

test('options that are spread into others → compile', () => {
  const make = (options: Partial<WebhookHandlerOptions>) =>
    createWebhookHandler({ secret: 'whsec', onEvent, onError: () => {}, ...options });
  expectTypeOf(make).parameter(0).toExtend<{ readonly leaseMs?: number | undefined }>();
});

test('a misspelt option → does not compile', () => {
  // @ts-expect-error -- it is `leaseMs`
  const options: WebhookHandlerOptions = { secret: 'whsec', store, leaseMS: 5_000, onEvent };
  expectTypeOf(options).not.toBeAny();
});

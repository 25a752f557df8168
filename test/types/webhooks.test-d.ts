import { expectTypeOf, test } from 'vitest';
import type { PollManyUpdate, PollUpdate, Tracking } from '../../src/index.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type ProcessOptions,
  type WebhookHandlerOptions,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import type { PolledResults } from '../../src/webhooks/results.ts';

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

test('an inbox with an option of an inbox → does not compile; with a logger, or options that are undefined → compiles', () => {
  type Beside<Options> = { secret: string; onEvent: () => void; inbox: WebhookInbox } & Options;
  expectTypeOf<Beside<{ leaseMs: number }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ retainMs: number }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ maxAttempts: number }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ onDeadLetter: () => void }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ callbackTimeoutMs: number }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ onError: () => void }>>().not.toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ logger: Console }>>().toExtend<WebhookHandlerOptions>();
  expectTypeOf<Beside<{ store: undefined; leaseMs: undefined }>>().toExtend<WebhookHandlerOptions>();
});

test('options that are spread into others → compile', () => {
  const make = (options: Partial<WebhookHandlerOptions>) =>
    createWebhookHandler({ secret: 'whsec', onEvent, onReport: () => {}, ...options });
  expectTypeOf(make).parameter(0).toExtend<{ readonly leaseMs?: number | undefined }>();
  const makeWithInbox = (options: Partial<WebhookHandlerOptions> & { readonly inbox?: undefined }) =>
    createWebhookHandler({ secret: 'whsec', onEvent, onError: () => {}, ...options });
  expectTypeOf(makeWithInbox).parameter(0).toExtend<{ readonly leaseMs?: number | undefined }>();
});

test('a misspelt option → does not compile', () => {
  // @ts-expect-error -- it is `leaseMs`
  const options: WebhookHandlerOptions = { secret: 'whsec', store, leaseMS: 5_000, onEvent };
  expectTypeOf(options).not.toBeAny();
});

test('results, an update of a poll, a list of these, and a body of any type → an inbox takes them', () => {
  type Update = Exclude<PollManyUpdate, { readonly tracking?: undefined }>;
  expectTypeOf<PollUpdate>().toExtend<PolledResults>();
  expectTypeOf<Update>().not.toBeNever();
  expectTypeOf<Update>().toExtend<PolledResults>();
  expectTypeOf<PollManyUpdate>().toExtend<PolledResults>();
  expectTypeOf(inbox.processResults).toBeCallableWith({} as Tracking, onEvent, { receivedAt: new Date() });
  expectTypeOf(inbox.processResults).toBeCallableWith({} as PollUpdate, onEvent, { busyTimeoutMs: 0 });
  expectTypeOf(inbox.processResults).toBeCallableWith([] as readonly Tracking[], onEvent);
  expectTypeOf(inbox.processResults).toBeCallableWith([] as (PollManyUpdate | Tracking)[], onEvent);
  expectTypeOf(inbox.process).toBeCallableWith({} as unknown, onEvent);
});

test('the body of a webhook and text → processResults does not compile', () => {
  type Results = Parameters<WebhookInbox['processResults']>[0];
  expectTypeOf<{ readonly trackings: readonly unknown[] }>().not.toExtend<Results>();
  expectTypeOf<string>().not.toExtend<Results>();
});

test('receivedAt as a text → does not compile', () => {
  // @ts-expect-error -- it is a Date
  const options: ProcessOptions = { receivedAt: '2026-03-04T17:12:57.000Z' };
  expectTypeOf(options).not.toBeAny();
});

test('a function around the process of an inbox, without types of its own → a handler takes it', () => {
  expectTypeOf(
    createWebhookHandler({
      secret: 'whsec',
      inbox: { process: (body, callbacks, options) => inbox.process(body, callbacks, { ...options }) },
      onEvent,
    }),
  ).toBeFunction();
});

test('a `secret` function of the request → compiles with every form of its result', () => {
  const { secret } = {} as { secret: Exclude<WebhookHandlerOptions['secret'], false | undefined> };
  expectTypeOf<() => string>().toExtend<typeof secret>();
  expectTypeOf<() => Promise<string[]>>().toExtend<typeof secret>();
  expectTypeOf<() => string | undefined>().toExtend<typeof secret>();
  expectTypeOf<() => Promise<{ secret: string; account: string } | null>>().toExtend<typeof secret>();
  expectTypeOf<() => number>().not.toExtend<typeof secret>();
  createWebhookHandler({
    secret: ({ url, method, headers }) => {
      expectTypeOf(url).toBeString();
      expectTypeOf(method).toBeString();
      expectTypeOf(headers).toEqualTypeOf<Headers>();
      return { secret: ['old', 'new'], account: 'acme' };
    },
    onEvent: (_event, { account }) => expectTypeOf(account).toEqualTypeOf<string | undefined>(),
    onOther: (_message, context) => expectTypeOf(context?.account).toEqualTypeOf<string | undefined>(),
    onReport: ({ account }) => expectTypeOf(account).toEqualTypeOf<string | undefined>(),
  });
});

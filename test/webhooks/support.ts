import type { Claim, DedupeStore, WebhookInboxOptions, WebhookProcessor } from '../../src/webhooks/index.ts';
import { MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';

/** A promise that the test settles. */
export function deferred<Value = void>() {
  let resolve: (value: Value) => void = () => {};
  let reject: (reason?: unknown) => void = () => {};
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** One item of an enveloped payload, with an event per given id. */
export function tracking(trackerId: string, ...events: (string | Record<string, unknown>)[]) {
  return {
    metadata: {
      generatedAt: '2026-03-04T17:12:57.000Z',
      messageId: `message-${trackerId}`,
      topic: 'tracking/events',
    },
    tracker: { trackerId, trackingNumber: '9400115901047177598206', clientTrackerId: `order-${trackerId}` },
    shipment: { statusMilestone: 'in_transit' },
    events: events.map((event) => (typeof event === 'string' ? { eventId: event } : event)),
    statistics: { timestamps: { deliveredDatetime: null } },
  };
}

/** A proof of delivery, as one item of an enveloped payload. */
export function proofOfDelivery(trackerId: string, messageId: string | null = 'message-1') {
  return {
    metadata: { generatedAt: '2026-03-04T17:12:57.000Z', messageId, topic: 'tracking/pod' },
    tracker: { trackerId, trackingNumber: '9400115901047177598206' },
    data: {
      status: 'found',
      courier: 'us-post',
      content: { type: 'link', text: null, downloadUrl: 'https://example.com/1.pdf' },
    },
  };
}

/** The enveloped payload of some items. */
export function payload(...trackings: unknown[]) {
  return { trackings };
}

interface TestInboxOptions extends Partial<WebhookInboxOptions> {
  /** Instead of what `process` is given. */
  readonly busyTimeoutMs?: number;
}

/** An inbox on a memory store that keeps its errors to itself. */
export function makeInbox({ busyTimeoutMs, ...options }: TestInboxOptions = {}): WebhookProcessor {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {}, ...options });
  if (busyTimeoutMs === undefined) return inbox;
  return {
    process: (body, callbacks, options) => inbox.process(body, callbacks, { ...options, busyTimeoutMs }),
  };
}

/** An inbox that writes down the signal of each webhook. */
export function makeSignalInbox(inbox: WebhookProcessor = makeInbox()) {
  const signals: (AbortSignal | undefined)[] = [];
  const process: WebhookProcessor['process'] = (body, callbacks, options) => {
    signals.push(options?.signal);
    return inbox.process(body, callbacks, options);
  };
  return { signals, inbox: { process } };
}

/** A store that writes down what it is asked, and fails or waits where the test says so. */
export class ScriptedStore implements DedupeStore {
  readonly calls: { readonly operation: 'claim' | 'commit' | 'release'; readonly keys: readonly string[] }[] =
    [];
  readonly tokens = new Set<string>();
  /** Called before each operation; throws or waits to play a broken store. */
  before: (operation: 'claim' | 'commit' | 'release', keys: readonly string[]) => unknown = () => {};
  readonly #store = new MemoryDedupeStore();

  async claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    await this.#enter('claim', keys);
    this.tokens.add(options.token);
    return this.#store.claim(keys, options);
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#enter('commit', keys);
    return this.#store.commit(keys, options);
  }

  async release(keys: readonly string[], options: { readonly token: string }): Promise<void> {
    await this.#enter('release', keys);
    return this.#store.release(keys, options);
  }

  async #enter(operation: 'claim' | 'commit' | 'release', keys: readonly string[]): Promise<void> {
    this.calls.push({ operation, keys: [...keys] });
    await this.before(operation, keys);
  }
}

/** What `failingOn` throws. */
export const failure = new Error('the warehouse is closed');

/** A handler that throws for one event id, and writes down the attempts of all. */
export function failingOn(eventId: string) {
  const attempts: string[] = [];
  return {
    attempts,
    handler: (event: { eventId?: unknown }, { attempt }: { attempt: number }) => {
      attempts.push(`${String(event.eventId)}#${attempt}`);
      if (event.eventId === eventId) throw failure;
    },
  };
}

import { beforeEach, vi } from 'vitest';
import type {
  Claim,
  DedupeStore,
  WebhookHandlerOptions,
  WebhookInboxOptions,
} from '../../src/webhooks/index.ts';
import { MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';

/** Fakes the timers of each test of a file; call it at the file's top. */
export function useFakeTimers(): void {
  beforeEach(() => void vi.useFakeTimers());
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

/** The payload of one event, `e1` of tracker `t1`. */
export const E1 = payload(tracking('t1', 'e1'));

/** The payload of two events, `e1` and `e2` of tracker `t1`. */
export const TWO = payload(tracking('t1', 'e1', 'e2'));

/** The key of an event of tracker `t1`. */
export function buildKey(eventId: string): string {
  return `tracking/events:t1:${eventId}`;
}

interface TestInboxOptions extends Partial<WebhookInboxOptions> {
  /** Passed to every call of `process`. */
  readonly busyTimeoutMs?: number;
}

/** An inbox on a memory store that ignores its errors. */
export function makeInbox({
  busyTimeoutMs,
  ...options
}: TestInboxOptions = {}): NonNullable<WebhookHandlerOptions['inbox']> {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {}, ...options });
  if (busyTimeoutMs === undefined) return inbox;
  return {
    process: (body, callbacks, options) => inbox.process(body, callbacks, { ...options, busyTimeoutMs }),
  };
}

type Operation = 'claim' | 'commit' | 'release';

/** A store that records its calls, and fails or waits as scripted. */
export class ScriptedStore implements DedupeStore {
  readonly calls: { readonly operation: Operation; readonly keys: readonly string[] }[] = [];
  /** Called before each operation; throws or waits to play a broken store. */
  before: (operation: Operation, keys: readonly string[]) => unknown = () => {};
  readonly #store = new MemoryDedupeStore();

  async claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    await this.#enter('claim', keys);
    return this.#store.claim(keys, options);
  }

  async commit(keys: readonly string[], options: { readonly retainMs: number }): Promise<void> {
    await this.#enter('commit', keys);
    return this.#store.commit(keys, options);
  }

  async release(...[keys, options]: Parameters<DedupeStore['release']>): Promise<void> {
    await this.#enter('release', keys);
    return this.#store.release(keys, options);
  }

  /** Runs `effect` before each of these operations, and nothing before the others. */
  on(operation: Operation, effect: (keys: readonly string[]) => unknown): void {
    this.before = (called, keys) => (called === operation ? effect(keys) : undefined);
  }

  /** The operations so far, in their order. */
  get operations(): Operation[] {
    return this.calls.map(({ operation }) => operation);
  }

  /** Leases an event of tracker `t1` to another receiver, and returns the status that this receiver got. */
  async lease(eventId: string, leaseMs = 60_000, token = 'other'): Promise<Claim['status'] | undefined> {
    return (await this.#store.claim([buildKey(eventId)], { token, leaseMs }))[0]?.status;
  }

  /** Leases events to a receiver that dies; its leases have ended, so the next claim is another attempt. */
  async leaseToDead(eventIds: readonly string[], token = 'dead'): Promise<void> {
    for (const eventId of eventIds) await this.lease(eventId, 10, token);
    vi.advanceTimersByTime(11);
  }

  async #enter(operation: Operation, keys: readonly string[]): Promise<void> {
    this.calls.push({ operation, keys: [...keys] });
    await this.before(operation, keys);
  }
}

/** The error that `failingOn` throws. */
export const failure = new Error('the warehouse is closed');

/** A callback that throws for one event id, and records the attempts of all. */
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

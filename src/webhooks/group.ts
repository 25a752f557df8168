import { randomUUID } from 'node:crypto';
import { isWorkerd } from '../common/timing.ts';
import type { WorkItem } from './callbacks.ts';

/** What one webhook wants of a store. */
export interface StoreRequest {
  readonly keys: readonly string[];
  /** The token of the statement that carried it; set when it is sent. */
  token?: string;
}

interface Waiting<Result> {
  readonly request: StoreRequest;
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Keeps a statement short enough to be read, locked and answered in one go. A webhook is not split: a larger one goes alone, in several. */
export const MOST_KEYS = 1_000;
/** A statement that takes longer than this holds nobody else up: it may wait for a lock, or for an answer that never comes. */
const STALLED_MS = 1_000;
/** So many failures in a row are not of one key: the store is down, and is spared the rest. */
const MOST_FAILURES = 3;

/**
 * Gathers what webhooks of this process want while an earlier statement is under way, and sends it as the next one.
 * The first goes at once, without a timer. The keys of one statement must be distinct.
 */
export class Group<Result> {
  readonly #send: (keys: readonly string[], token: string) => Promise<readonly Result[]>;
  #waiting: Waiting<Result>[] = [];
  /** Since when a statement is under way, on the clock of `performance.now`. */
  #sendingSince: number | undefined;

  /** @param send - runs one statement; resolves to one result a key */
  constructor(send: (keys: readonly string[], token: string) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  /** Resolves to one result a key. Rejects as the statement did. */
  ask(request: StoreRequest): Promise<readonly Result[]> {
    if (isWorkerd) {
      request.token = randomUUID();
      return this.#send(request.keys, request.token);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      const isSending =
        this.#sendingSince !== undefined && performance.now() - this.#sendingSince < STALLED_MS;
      if (!isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    let since: number | undefined;
    while (this.#waiting.length > 0) {
      since = performance.now();
      this.#sendingSince = since;
      await this.#sendBatch(this.#takeBatch());
      // Another one has overtaken it, and sends what gathers.
      if (this.#sendingSince !== since) return;
    }
    this.#sendingSince = undefined;
  }

  #takeBatch(): readonly Waiting<Result>[] {
    let keyCount = 0;
    const end = this.#waiting.findIndex(({ request }, index) => {
      keyCount += request.keys.length;
      return index > 0 && keyCount > MOST_KEYS;
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #sendBatch(batch: readonly Waiting<Result>[]): Promise<void> {
    const token = randomUUID();
    for (const { request } of batch) request.token = token;
    try {
      const results = await this.#send(
        batch.flatMap(({ request }) => request.keys),
        token,
      );
      let start = 0;
      for (const { request, resolve } of batch) {
        resolve(results.slice(start, start + request.keys.length));
        start += request.keys.length;
      }
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else await this.#sendEach(batch, token);
    }
  }

  /** A key that the store cannot take must not fail its neighbours, so each webhook is asked for alone. */
  async #sendEach(batch: readonly Waiting<Result>[], token: string): Promise<void> {
    let failures = 0;
    let failure: unknown;
    for (const { request, resolve, reject } of batch) {
      try {
        if (failures === MOST_FAILURES) throw failure;
        resolve(await this.#send(request.keys, token));
        failures = 0;
      } catch (error) {
        failure = error;
        failures = Math.min(failures + 1, MOST_FAILURES);
        reject(error);
      }
    }
  }
}

/** The items that webhooks of this process are at work on, so that a duplicate waits for them here and asks no store. */
export class InFlight {
  readonly #holders = new Map<string, WorkItem>();

  /** Makes the item the holder of its key unless another one is; returns whether it is now. */
  take(item: WorkItem): boolean {
    // A Worker asks the store instead.
    if (isWorkerd) {
      item.holder = item;
      return true;
    }
    const holder = this.#holders.get(item.key);
    item.holder = holder ?? item;
    if (holder === undefined) this.#holders.set(item.key, item);
    return holder === undefined;
  }

  /** The webhook of the holder is through with it: its outcome is what its duplicates go by. */
  settle(holder: WorkItem): void {
    this.#holders.delete(holder.key);
    holder.settle();
  }
}

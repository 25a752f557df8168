import { randomUUID } from 'node:crypto';
import { isWorkerd } from '../common/clock.ts';
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
/** So many waiting keys are sent beside a statement that is under way: the store works on while this process handles events. */
const WORTH_A_SECOND_KEYS = 100;
/** So many failures in a row are not of one key: the store is down, and is spared the rest. */
const MOST_FAILURES = 3;

/**
 * Gathers what webhooks of this process want while an earlier statement is under way, and sends it as the next one, or sooner
 * where it is much. The first goes at once, without a timer. The keys of one statement must be distinct.
 */
export class Group<Result> {
  readonly #send: (keys: readonly string[], token: string) => Promise<readonly Result[]>;
  #waiting: Waiting<Result>[] = [];
  #waitingKeys = 0;
  /** The statements under way, by when they were sent on the clock of `performance.now`. */
  readonly #underWay = new Set<{ readonly sentAt: number }>();

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
      this.#waitingKeys += request.keys.length;
      this.#sendNext();
    });
  }

  #sendNext(): void {
    while (this.#waiting.length > 0 && this.#maySend()) {
      const statement = { sentAt: performance.now() };
      this.#underWay.add(statement);
      void this.#sendBatch(this.#takeBatch()).finally(() => {
        this.#underWay.delete(statement);
        this.#sendNext();
      });
    }
  }

  #maySend(): boolean {
    const now = performance.now();
    let count = 0;
    for (const { sentAt } of this.#underWay) if (now - sentAt < STALLED_MS) count += 1;
    return count === 0 || (count === 1 && this.#waitingKeys >= WORTH_A_SECOND_KEYS);
  }

  #takeBatch(): readonly Waiting<Result>[] {
    let keyCount = 0;
    let end = 0;
    for (const { request } of this.#waiting) {
      if (end > 0 && keyCount + request.keys.length > MOST_KEYS) break;
      keyCount += request.keys.length;
      end += 1;
    }
    this.#waitingKeys -= keyCount;
    return this.#waiting.splice(0, end);
  }

  async #sendBatch(batch: readonly Waiting<Result>[]): Promise<void> {
    const token = randomUUID();
    const keys: string[] = [];
    for (const { request } of batch) {
      request.token = token;
      for (const key of request.keys) keys.push(key);
    }
    try {
      const results = await this.#send(keys, token);
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

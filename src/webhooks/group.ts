import { randomUUID } from 'node:crypto';

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

/** Keeps a statement short enough to be read, locked and answered in one go. A webhook is not split: a larger one goes alone. */
const MOST_KEYS = 1_000;

/**
 * Gathers what webhooks of this process want while an earlier statement is under way, and sends it as the next one.
 * The first goes at once, without a timer. The keys of one statement must be distinct.
 */
export class Group<Result> {
  readonly #send: (keys: readonly string[], token: string) => Promise<readonly Result[]>;
  #waiting: Waiting<Result>[] = [];
  #isSending = false;

  /** @param send - runs one statement; resolves to one result a key */
  constructor(send: (keys: readonly string[], token: string) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  /** Resolves to one result a key. Rejects as the statement did. */
  ask(request: StoreRequest): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) await this.#sendBatch(this.#takeBatch());
    this.#isSending = false;
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
      // A key that the store cannot take must not fail its neighbours, so each webhook is asked for alone.
      else
        await Promise.all(
          batch.map(({ request, resolve, reject }) => this.#send(request.keys, token).then(resolve, reject)),
        );
    }
  }
}

/** Whether the work of a key was done for good. */
type Listener = (isDone: boolean) => void;

/** The keys that webhooks of this process are at work on, so that a duplicate waits here and asks no store. */
export class InFlight {
  readonly #listeners = new Map<string, Set<Listener> | undefined>();

  /** Whether nobody here was at work on the key; then the caller is. */
  take(key: string): boolean {
    if (this.#listeners.has(key)) return false;
    this.#listeners.set(key, undefined);
    return true;
  }

  /** The caller of `take` is through with the key. */
  settle(key: string, isDone: boolean): void {
    const listeners = this.#listeners.get(key);
    this.#listeners.delete(key);
    for (const listener of listeners ?? []) listener(isDone);
  }

  /** Calls back once the key is settled; at once where nobody is at work on it. Returns what takes that back. */
  onSettled(key: string, listener: Listener): () => void {
    if (!this.#listeners.has(key)) {
      listener(false);
      return () => {};
    }
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return () => listeners.delete(listener);
  }
}

import { onAbort } from '../common/abort.ts';
import { QueueFullError } from '../errors.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  LongPauseError,
  type Permit,
  type Priority,
} from './limiter.ts';

/** While a background call waits, at most this many interactive calls go before it. */
const MAX_INTERACTIVE_RUN = 19;

/** With this many buckets the idle ones are looked for and forgotten, so that keys which change daily leak nothing. */
const CLEAN_FROM_BUCKETS = 256;

/** The calls of one account to one endpoint, and its tokens. */
interface Bucket {
  /** True if forgetting the bucket changes nothing that matters. */
  isIdle(): boolean;
  snapshot(): BucketSnapshot;
}

/** The buckets of one limiter, each made by its first call. */
export class Buckets<B extends Bucket> {
  readonly #create: (options: AcquireOptions) => B;
  readonly #buckets = new Map<string, B>();
  #cleanFrom = CLEAN_FROM_BUCKETS;

  constructor(create: (options: AcquireOptions) => B) {
    this.#create = create;
  }

  get(options: AcquireOptions): B {
    const key = formatBucketKey(options.bucket);
    const known = this.#buckets.get(key);
    if (known) return known;
    const bucket = this.#create(options);
    this.#forgetIdle();
    this.#buckets.set(key, bucket);
    return bucket;
  }

  snapshot(id: BucketId): BucketSnapshot | undefined {
    return this.#buckets.get(formatBucketKey(id))?.snapshot();
  }

  /** Doubling the mark keeps the cost of looking constant per bucket that was made. */
  #forgetIdle(): void {
    if (this.#buckets.size < this.#cleanFrom) return;
    for (const [key, bucket] of this.#buckets) if (bucket.isIdle()) this.#buckets.delete(key);
    this.#cleanFrom = Math.max(CLEAN_FROM_BUCKETS, 2 * this.#buckets.size);
  }
}

/** One string per bucket. Neither a URL nor an endpoint name holds a line break, so no two buckets share a key. */
export function formatBucketKey({ baseUrl, account, endpoint }: BucketId): string {
  return `${endpoint}\n${baseUrl}\n${account}`;
}

/** A call that asks for a token. */
export interface TokenRequest {
  readonly priority: Priority;
  readonly signal: AbortSignal | undefined;
  readonly maxPauseMs: number | undefined;
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
}

/** A call that waits, linked to its neighbours. */
class WaitingCall {
  readonly request: TokenRequest;
  /** The later the call came, the larger. */
  readonly sequence: number;
  unsubscribe: (() => void) | undefined;
  previous: WaitingCall | undefined;
  next: WaitingCall | undefined;

  constructor(request: TokenRequest, sequence: number) {
    this.request = request;
    this.sequence = sequence;
  }
}

/** First in, first out, with removal from the middle in constant time. */
class FifoQueue {
  first: WaitingCall | undefined;
  last: WaitingCall | undefined;
  size = 0;

  append(call: WaitingCall): void {
    call.previous = this.last;
    if (this.last) this.last.next = call;
    else this.first = call;
    this.last = call;
    this.size += 1;
  }

  remove(call: WaitingCall): void {
    if (call.previous) call.previous.next = call.next;
    else this.first = call.next;
    if (call.next) call.next.previous = call.previous;
    else this.last = call.previous;
    this.size -= 1;
  }
}

/** The calls that wait for a token of one bucket, in one lane per priority, and the rule which of them goes next. */
export class CallQueue {
  readonly #options: {
    readonly endpoint: string;
    readonly maxQueue: number;
    readonly onAbort: () => void;
  };
  readonly #lanes = { interactive: new FifoQueue(), background: new FifoQueue() };
  #sequence = 0;
  #interactiveRun = 0;

  /** @param options - `endpoint`: for messages; `onAbort`: called after an aborted call has left the queue */
  constructor(options: { endpoint: string; maxQueue: number; onAbort: () => void }) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.interactive.size + this.#lanes.background.size;
  }

  /** How many interactive calls wait. */
  get interactiveSize(): number {
    return this.#lanes.interactive.size;
  }

  /** Lets a call wait, or rejects it if it does not wait for so long a pause. */
  append(request: TokenRequest, pausedForMs: number): void {
    if (isPauseTooLong(pausedForMs, request)) {
      request.reject(new LongPauseError(pausedForMs));
      return;
    }
    this.#sequence += 1;
    const call = new WaitingCall(request, this.#sequence);
    this.#lanes[request.priority].append(call);
    const { signal } = request;
    if (signal === undefined) return;
    // All callbacks of one signal share one listener, however many calls wait with it.
    call.unsubscribe = onAbort(signal, () => {
      this.#reject(call, signal.reason);
      this.#options.onAbort();
    });
  }

  /**
   * The call that goes next, if any may go.
   *
   * @param free - tokens in the bucket
   * @param reserved - how many of them background calls leave to interactive ones
   */
  next(free: number, reserved: number): WaitingCall | undefined {
    if (free <= 0) return undefined;
    const background = this.#lanes.background.first;
    if (background && this.#interactiveRun >= MAX_INTERACTIVE_RUN) return background;
    return this.#lanes.interactive.first ?? (free > reserved ? background : undefined);
  }

  /** Removes and returns the call that goes next; see `next`. */
  take(free: number, reserved: number): TokenRequest | undefined {
    const call = this.next(free, reserved);
    if (call === undefined) return undefined;
    this.#remove(call);
    const isBeforeBackground = call.request.priority === 'interactive' && this.#lanes.background.size > 0;
    this.#interactiveRun = isBeforeBackground ? this.#interactiveRun + 1 : 0;
    return call.request;
  }

  /** Rejects every call that does not wait for so long a pause. */
  rejectIfPauseExceeds(pausedForMs: number): void {
    for (const call of this.#calls()) {
      if (isPauseTooLong(pausedForMs, call.request)) this.#reject(call, new LongPauseError(pausedForMs));
    }
  }

  /** Rejects the latest calls while more than `maxQueue` wait. */
  rejectExcess(): void {
    const { endpoint, maxQueue } = this.#options;
    while (this.size > maxQueue) {
      const { last: interactive } = this.#lanes.interactive;
      const { last: background } = this.#lanes.background;
      const isInteractiveLatest = (interactive?.sequence ?? 0) > (background?.sequence ?? 0);
      const latest = isInteractiveLatest ? interactive : background;
      if (latest === undefined) return;
      const message = `Expected at most ${maxQueue} calls of \`${endpoint}\` to wait for the rate limit, got one more`;
      this.#reject(latest, new QueueFullError(message));
    }
  }

  /** Rejects every call, each with a reason of its own. */
  rejectAll(createReason: () => unknown): void {
    for (const call of this.#calls()) this.#reject(call, createReason());
  }

  *#calls(): Iterable<WaitingCall> {
    for (const lane of [this.#lanes.interactive, this.#lanes.background]) {
      // A call that was removed meanwhile still knows the next one.
      for (let call = lane.first; call; call = call.next) yield call;
    }
  }

  #remove(call: WaitingCall): void {
    this.#lanes[call.request.priority].remove(call);
    call.unsubscribe?.();
  }

  #reject(call: WaitingCall, reason: unknown): void {
    this.#remove(call);
    call.request.reject(reason);
  }
}

function isPauseTooLong(pausedForMs: number, { maxPauseMs }: TokenRequest): boolean {
  // Whole milliseconds, because what is left of an hour may be an hour and a billionth.
  return maxPauseMs !== undefined && Math.floor(pausedForMs) > maxPauseMs;
}

import { onAbort } from '../common/abort.ts';
import { QueueFullError } from '../errors.ts';
import { type AcquireOptions, LongPauseError, type Permit } from './limiter.ts';

const MAX_INTERACTIVE_BEFORE_BACKGROUND = 19;

interface TokenRequest extends Pick<AcquireOptions, 'priority' | 'signal' | 'maxPauseMs'> {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
}

interface WaitingCall {
  readonly request: TokenRequest;
  readonly sequence: number;
  unsubscribe?: () => void;
  previous?: WaitingCall | undefined;
  next?: WaitingCall | undefined;
}

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

interface QueueOptions {
  readonly endpoint: string;
  readonly maxQueue: number;
  readonly onAbort: () => void;
}

/** The calls that wait for a token of one bucket, in one lane per priority, and the rule that chooses the next one. */
export class CallQueue {
  readonly #options: QueueOptions;
  readonly #lanes = { interactive: new FifoQueue(), background: new FifoQueue() };
  #sequence = 0;
  #interactiveRun = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.interactive.size + this.#lanes.background.size;
  }

  get interactiveSize(): number {
    return this.#lanes.interactive.size;
  }

  append(request: TokenRequest, pausedForMs: number): void {
    if (isPauseTooLong(pausedForMs, request)) {
      request.reject(new LongPauseError(pausedForMs));
      return;
    }
    this.#sequence += 1;
    const call: WaitingCall = { request, sequence: this.#sequence };
    this.#lanes[request.priority].append(call);
    const { signal } = request;
    if (signal === undefined) return;
    call.unsubscribe = onAbort(signal, () => {
      this.#reject(call, signal.reason);
      this.#options.onAbort();
    });
  }

  /** Finds the call that goes next; background calls leave `reserved` of the `free` tokens to interactive ones. */
  next(free: number, reserved: number): WaitingCall | undefined {
    if (free <= 0) return undefined;
    const background = this.#lanes.background.first;
    if (background && this.#interactiveRun >= MAX_INTERACTIVE_BEFORE_BACKGROUND) return background;
    return this.#lanes.interactive.first ?? (free > reserved ? background : undefined);
  }

  take(free: number, reserved: number): TokenRequest | undefined {
    const call = this.next(free, reserved);
    if (call === undefined) return undefined;
    this.#remove(call);
    const isBeforeBackground = call.request.priority === 'interactive' && this.#lanes.background.size > 0;
    this.#interactiveRun = isBeforeBackground ? this.#interactiveRun + 1 : 0;
    return call.request;
  }

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
      const message = `The queue of \`${endpoint}\` is full (\`maxQueue\` is ${maxQueue}); this call was not sent`;
      this.#reject(latest, new QueueFullError(message));
    }
  }

  rejectAll(createReason: () => unknown): void {
    for (const call of this.#calls()) this.#reject(call, createReason());
  }

  *#calls(): Iterable<WaitingCall> {
    for (const lane of [this.#lanes.interactive, this.#lanes.background]) {
      // A call that is removed during the loop keeps its `next`, so the loop goes on.
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
  // Compare whole milliseconds, because rounding can make a pause of an hour slightly longer than an hour.
  return maxPauseMs !== undefined && Math.floor(pausedForMs) > maxPauseMs;
}

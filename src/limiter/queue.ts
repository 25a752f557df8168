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
}

interface QueueOptions {
  readonly endpoint: string;
  readonly maxQueue: number;
  readonly onAbort: () => void;
}

/** The calls that wait for a token of one bucket, in one lane per priority, and the rule that chooses the next one. */
export class CallQueue {
  readonly #options: QueueOptions;
  readonly #lanes = { interactive: new Set<WaitingCall>(), background: new Set<WaitingCall>() };
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
    this.#lanes[request.priority].add(call);
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
    const [background] = this.#lanes.background;
    const [interactive] = this.#lanes.interactive;
    if (background && this.#interactiveRun >= MAX_INTERACTIVE_BEFORE_BACKGROUND) return background;
    return interactive ?? (free > reserved ? background : undefined);
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

  /** Rejects the latest calls beyond `maxQueue`. */
  rejectExcess(): void {
    const { endpoint, maxQueue } = this.#options;
    if (this.size <= maxQueue) return;
    const inOrder = this.#calls().sort((a, b) => a.sequence - b.sequence);
    for (const call of inOrder.slice(maxQueue)) {
      const message = `The queue of \`${endpoint}\` is full (\`maxQueue\` is ${maxQueue}); this call was not sent`;
      this.#reject(call, new QueueFullError(message));
    }
  }

  rejectAll(createReason: () => unknown): void {
    for (const call of this.#calls()) this.#reject(call, createReason());
  }

  #calls(): WaitingCall[] {
    return [...this.#lanes.interactive, ...this.#lanes.background];
  }

  #remove(call: WaitingCall): void {
    this.#lanes[call.request.priority].delete(call);
    call.unsubscribe?.();
  }

  #reject(call: WaitingCall, reason: unknown): void {
    this.#remove(call);
    call.request.reject(reason);
  }
}

function isPauseTooLong(pausedForMs: number, { maxPauseMs }: TokenRequest): boolean {
  // Compare whole milliseconds: rounding can make a pause of an hour slightly longer than an hour.
  return maxPauseMs !== undefined && Math.floor(pausedForMs) > maxPauseMs;
}

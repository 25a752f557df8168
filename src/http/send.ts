import ky, { type KyInstance } from 'ky';
import { linkedController, MAX_TIMER_MS, onAbort, sleep, systemClock } from '../common/clock.ts';
import { MAX_CAUSES, maskCause, maskText, toPrintableLine } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import {
  ConnectionError,
  ResponseValidationError,
  TimeoutError,
  type TimeoutPhase,
  type TrackingError,
} from '../errors.ts';
import type { RequestOptions } from '../options.ts';
import type { PreparedRequest } from './prepare.ts';
import { type RawResponse, readRequestId } from './response.ts';

const ACTIVITIES: Record<TimeoutPhase, string> = {
  queue: 'waiting for a rate limit token',
  headers: 'waiting for a response',
  body: 'reading the response',
  backoff: 'waiting to try again',
};

/** The time limit of one call. Its signal aborts with the caller's or after `totalTimeoutMs`, and ends the call. */
export class Deadline {
  phase: TimeoutPhase = 'queue';
  /** The failure of the previous attempt: the cause of a timeout that comes before the next request is sent. */
  lastFailure: TrackingError | undefined;
  readonly signal: AbortSignal | undefined;
  readonly #title: string;
  readonly #totalTimeoutMs: number | undefined;
  readonly #endsAt: number = Number.POSITIVE_INFINITY;
  readonly #controller: AbortController | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(title: string, { signal, totalTimeoutMs }: Pick<RequestOptions, 'signal' | 'totalTimeoutMs'>) {
    this.#title = title;
    this.#totalTimeoutMs = totalTimeoutMs;
    if (signal === undefined && totalTimeoutMs === undefined) return;
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.#unsubscribe = unsubscribe;
    this.signal = controller.signal;
    if (totalTimeoutMs === undefined) return;
    this.#endsAt = systemClock.now() + totalTimeoutMs;
    this.#timer = setTimeout(() => this.expire(), totalTimeoutMs);
  }

  /** The rest of `totalTimeoutMs`, in milliseconds; Infinity without one. */
  get remainingMs(): number {
    return this.#endsAt - systemClock.now();
  }

  /** Ends the call because its time is up, and returns the error that it rejects with. */
  expire(): TimeoutError {
    const isBetweenAttempts = this.phase === 'queue' || this.phase === 'backoff';
    const cause = isBetweenAttempts ? this.lastFailure : undefined;
    const error = this.#timeoutError('totalTimeoutMs', this.#totalTimeoutMs ?? 0, cause);
    this.#controller?.abort(error);
    return error;
  }

  /** Waits until a moment of the monotonic clock; rejects with the signal's reason when the call ends before. */
  async sleepUntil(moment: number): Promise<void> {
    for (let delayMs = moment - systemClock.now(); delayMs > 0; delayMs = moment - systemClock.now()) {
      await sleep(Math.min(Math.ceil(delayMs), MAX_TIMER_MS), this.signal);
    }
  }

  /** Rejects in time even if the attempt ignores its signal, because a key function, a `fetch` or a body may never end. */
  async withTimeout<T>(timeoutMs: number, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let unsubscribe = () => {};
    try {
      return await new Promise((resolve, reject) => {
        // A listener on the attempt's own signal would keep the response alive until a major garbage collection.
        const abort = (reason: unknown) => {
          controller.abort(reason);
          reject(reason);
        };
        timer = setTimeout(() => abort(this.#timeoutError('timeoutMs', timeoutMs)), timeoutMs);
        unsubscribe = onAbort(this.signal, () => abort(this.signal?.reason));
        attempt(controller.signal).then(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#unsubscribe?.();
  }

  #timeoutError(
    option: 'timeoutMs' | 'totalTimeoutMs',
    timeoutMs: number,
    cause?: TrackingError,
  ): TimeoutError {
    const { phase } = this;
    const message = `${this.#title} ran out of \`${option}\` (${timeoutMs} ms) while ${ACTIVITIES[phase]}`;
    return new TimeoutError(message, { phase, timeoutMs }, cause === undefined ? undefined : { cause });
  }
}

export function createKy({ baseUrl, headers }: Config): KyInstance {
  return ky.create({
    prefixUrl: baseUrl,
    headers,
    // Never followed, because the key would travel with it.
    redirect: 'manual',
    // Off: each endpoint decides what is repeated, and every attempt takes its own permit.
    retry: 0,
    // Off: ky stops its timer when the headers arrive; the timer of an attempt covers the body, too.
    timeout: false,
    throwHttpErrors: false,
  });
}

interface AttemptOptions {
  /** The caller's headers; they win over the client's. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  /** Called right before the request leaves; if it throws, nothing is sent. */
  readonly onSend: () => void;
  readonly onHeaders: (response: Response) => void;
}

export async function sendRequest(
  client: KyInstance,
  config: Config,
  request: PreparedRequest<unknown>,
  attempt: AttemptOptions,
): Promise<RawResponse> {
  const { signal } = attempt;
  const key = typeof config.apiKey === 'string' ? config.apiKey : await config.apiKey();
  const { method, body } = request;
  const headers =
    body === undefined ? attempt.headers : { ...attempt.headers, 'content-type': 'application/json' };
  let hasHeaders = false;
  try {
    const response = await client(request.target.slice(1), {
      method,
      ...(body !== undefined && { body }),
      // Left out if there are none; otherwise ky would copy the client's headers once more.
      ...(headers && { headers }),
      // Looked up now, so that mocks installed later work. The signal goes to `fetch` itself: ky would derive three others
      // from it, and a `fetch` that reads only its second argument would see none.
      fetch: (outgoing) => {
        // Sound: ky calls its `fetch` with the request that it has built.
        (outgoing as Request).headers.set('authorization', `Bearer ${key}`);
        attempt.onSend();
        return (config.fetch ?? globalThis.fetch)(outgoing, { signal });
      },
    });
    attempt.onHeaders(response);
    hasHeaders = true;
    // A `fetch` that ignores its signal may respond after the attempt has ended.
    signal.throwIfAborted();
    const text = await readText(response, request, config.maxResponseBytes);
    const { status, statusText, headers: received } = response;
    const read = { status, statusText, headers: received, text: text ?? '', key };
    if (text === undefined) throw createTooLongError(request, read, config.maxResponseBytes);
    return read;
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof ResponseValidationError) throw cause;
    const what = hasHeaders ? 'got a response that broke off' : 'got no response';
    const reason = toPrintableLine(maskText(formatRootCause(cause), key), MAX_REASON_LENGTH);
    throw new ConnectionError(`${request.title} ${what}: ${reason}`, {
      cause: maskCause(cause, key),
      neverSent: !hasHeaders && wasNeverSent(cause),
    });
  }
}

async function readText(
  response: Response,
  request: PreparedRequest<unknown>,
  maxBytes: number,
): Promise<string | undefined> {
  const text = readBody(response, maxBytes);
  // The status is enough: ignore a body that is cut off or too long.
  const isStatusEnough = 'isStatusEnough' in request.response && request.response.isStatusEnough;
  if (isStatusEnough && response.ok) return (await text.catch(() => '')) ?? '';
  return await text;
}

function createTooLongError(
  request: PreparedRequest<unknown>,
  response: RawResponse,
  maxBytes: number,
): ResponseValidationError {
  const message = `Expected ${request.title} to respond with at most ${maxBytes} bytes (\`maxResponseBytes\`), got more`;
  return new ResponseValidationError(message, {
    issues: [{ path: [], code: 'too_big', message }],
    body: undefined,
    status: response.status,
    requestId: readRequestId(response),
  });
}

/** Reads a body as text; undefined when it is longer than `maxBytes`. ky reads without a bound. */
async function readBody(response: Response, maxBytes: number): Promise<string | undefined> {
  const { headers, body } = response;
  // The length says nothing about a compressed body, which can become a thousand times longer.
  const declaredBytes = headers.has('content-encoding') ? null : headers.get('content-length');
  // A HEAD response declares the length of a body that is not sent. A stub may have no `body` at all.
  if (body !== null && Number(declaredBytes) > maxBytes) {
    body?.cancel().catch(() => {});
    return undefined;
  }
  // Counting costs time, and a response of known length needs no counting. The body of a stub may be no stream.
  if (declaredBytes !== null || typeof body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > maxBytes ? undefined : text;
  }
  return await readCounted(body, maxBytes);
}

async function readCounted(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      // Not awaited, because a stream may never confirm that it was cancelled.
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

const NEVER_CONNECTED_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  // undici
  'UND_ERR_CONNECT_TIMEOUT',
  // Bun
  'ConnectionRefused',
  'FailedToOpenSocket',
]);

const SYSTEM_CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/** Deno has no codes, but its message names the step. A URL holds no space, so it cannot imitate that message. */
const DENO_NEVER_CONNECTED = /^error sending request for url \(\S+\): client error \(Connect\)/;

const MAX_REASON_LENGTH = 200;

function listCauses(error: unknown): Error[] {
  const causes: Error[] = [];
  for (
    let current = error;
    current instanceof Error && causes.length <= MAX_CAUSES;
    current = current.cause
  ) {
    causes.push(current);
  }
  return causes;
}

function formatRootCause(error: unknown): string {
  const root = listCauses(error).at(-1);
  if (root === undefined) return 'unknown failure';
  const code = 'code' in root && typeof root.code === 'string' ? root.code : undefined;
  return root.message === '' ? (code ?? root.name) : root.message;
}

/**
 * True when a failure of `fetch` proves that no byte of the request has left. Only codes prove it: a proxy's error text can
 * speak of a refused connection, too. Any other code in the chain disproves it: a wrapper may have sent it and retried.
 */
function wasNeverSent(error: unknown): boolean {
  const causes = listCauses(error);
  const coded = causes.filter((cause) => 'code' in cause && typeof cause.code === 'string');
  if (coded.length > 0) {
    return coded
      .map(Object)
      .every(
        ({ code, syscall }) => NEVER_CONNECTED_CODES.has(code) || SYSTEM_CALLS_BEFORE_SENDING.has(syscall),
      );
  }
  const root = causes.at(-1);
  return 'Deno' in globalThis && root !== undefined && DENO_NEVER_CONNECTED.test(root.message);
}

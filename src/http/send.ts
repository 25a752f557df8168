import ky from 'ky';
import { linkedController, onAbort } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
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
import { createBodyError, type RawResponse } from './response.ts';

const ACTIVITIES: Record<TimeoutPhase, string> = {
  queue: 'waiting for its turn under the rate limit',
  headers: 'waiting for a response',
  body: 'reading the response',
  backoff: 'waiting to try again',
};

/** The time limit of one call. Its signal ends the call when the caller's signal aborts, or after `totalTimeoutMs`. */
export class Deadline {
  /** Undefined if the caller set neither `signal` nor `totalTimeoutMs`. */
  readonly signal: AbortSignal | undefined;
  phase: TimeoutPhase = 'queue';
  /**
   * The failure of the previous attempt. If the time is up before the next request is sent, the failure becomes the `cause` of the
   * TimeoutError.
   */
  lastFailure: TrackingError | undefined;
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
    this.signal = controller.signal;
    this.#unsubscribe = unsubscribe;
    if (totalTimeoutMs === undefined) return;
    this.#endsAt = systemClock.now() + totalTimeoutMs;
    this.#timer = systemClock.setTimeout(() => this.expire(), totalTimeoutMs);
  }

  /** The rest of `totalTimeoutMs`, in milliseconds; `Infinity` without that option. */
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

  /** Rejects in time even if the attempt ignores its signal, because a key function, a `fetch` or a body may never end. */
  async withTimeout<T>(timeoutMs: number, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let unsubscribe = () => {};
    try {
      return await new Promise((resolve, reject) => {
        // Reject here: a listener on `controller.signal` would keep the response in memory until a major garbage collection.
        const abort = (reason: unknown) => {
          controller.abort(reason);
          reject(reason);
        };
        timer = systemClock.setTimeout(() => abort(this.#timeoutError('timeoutMs', timeoutMs)), timeoutMs);
        unsubscribe = onAbort(this.signal, () => abort(this.signal?.reason));
        attempt(controller.signal).then(resolve, reject);
      });
    } finally {
      systemClock.clearTimeout(timer);
      unsubscribe();
    }
  }

  dispose(): void {
    systemClock.clearTimeout(this.#timer);
    this.#unsubscribe?.();
  }

  #timeoutError(
    option: 'timeoutMs' | 'totalTimeoutMs',
    timeoutMs: number,
    cause?: TrackingError,
  ): TimeoutError {
    const { phase } = this;
    const message = `${this.#title} timed out after ${timeoutMs} ms (\`${option}\`) while ${ACTIVITIES[phase]}`;
    return new TimeoutError(message, { phase, timeoutMs }, cause === undefined ? undefined : { cause });
  }
}

interface AttemptOptions {
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  readonly onSend: () => void;
  readonly onHeaders: (response: Response) => void;
}

export async function sendRequest(
  config: Config,
  request: PreparedRequest<unknown>,
  attempt: AttemptOptions,
): Promise<RawResponse> {
  const { signal } = attempt;
  const { method, body = null } = request;
  const { maxResponseBytes } = config;
  const key = typeof config.apiKey === 'string' ? config.apiKey : await config.apiKey();
  let hasHeaders = false;
  try {
    const response = await ky(config.baseUrl + request.target, {
      method,
      body,
      headers: {
        ...config.headers,
        ...attempt.headers,
        ...(body !== null && { 'content-type': 'application/json' }),
        authorization: `Bearer ${key}`,
      },
      // No redirect is followed, because the key would travel with it (docs/service.md 1.7).
      redirect: 'manual',
      // p-retry retries instead of ky, because endpoints differ in what may be retried and each attempt takes a permit.
      retry: 0,
      // `Deadline` limits the time instead of ky, because ky stops its timer when the headers arrive, before the body.
      timeout: false,
      throwHttpErrors: false,
      // Read `fetch` at each request, because a test may mock it later. Pass `signal` here, the only place where mocks read it.
      fetch: (outgoing) => {
        attempt.onSend();
        return (config.fetch ?? globalThis.fetch)(outgoing, { signal });
      },
    });
    attempt.onHeaders(response);
    hasHeaders = true;
    // A `fetch` that ignores its signal may respond after the attempt has ended.
    signal.throwIfAborted();
    const text = await readText(response, request, maxResponseBytes);
    const { status, statusText, headers } = response;
    const read = { status, statusText, headers, text: text ?? '', key };
    if (text !== undefined) return read;
    const got = `more than ${maxResponseBytes} bytes; if that is expected, raise \`maxResponseBytes\``;
    throw createBodyError({ request, response: read }, undefined, got, 'too_big');
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof ResponseValidationError) throw cause;
    const what = hasHeaders ? 'got an incomplete response' : 'got no response';
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
  // The status is enough (docs/service.md 8.12): ignore a body that is cut off or too long.
  if (request.response.isStatusEnough && response.ok) return (await text.catch(() => '')) ?? '';
  return await text;
}

/** Drops a byte order mark, which `Buffer.toString` would keep. */
const decoder = new TextDecoder();

async function readBody(response: Response, maxBytes: number): Promise<string | undefined> {
  // A stub of `fetch` may return a body that is not a stream.
  if (typeof response.body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > maxBytes ? undefined : text;
  }
  // Bytes are counted, because the declared length can be missing, or be that of the compressed body.
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return decoder.decode(Buffer.concat(chunks, bytes));
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      // `cancel` is not awaited, because a stream may never confirm that it was cancelled.
      reader.cancel().catch(() => {});
      return undefined;
    }
    chunks.push(value);
  }
}

const NEVER_CONNECTED_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT', // undici
  'ConnectionRefused', // Bun
  'FailedToOpenSocket', // Bun
]);

const SYSTEM_CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/** Deno's errors have no codes, but their messages name the failed step. A URL has no spaces, so its text cannot match by chance. */
const DENO_NEVER_CONNECTED = /^error sending request for url \(\S+\): client error \(Connect\)/;

const MAX_REASON_LENGTH = 200;

function listCauses(error: unknown, maxCauses = MAX_CAUSES): Error[] {
  if (!(error instanceof Error)) return [];
  return [error, ...(maxCauses > 0 ? listCauses(error.cause, maxCauses - 1) : [])];
}

function hasCode(error: Error): error is Error & { readonly code: string; readonly syscall?: string } {
  return 'code' in error && typeof error.code === 'string';
}

function formatRootCause(error: unknown): string {
  const root = listCauses(error).at(-1);
  if (root === undefined) return 'unknown failure';
  if (root.message === 'bad port') return '`fetch` blocks this port (bad port); use another port';
  return root.message || (hasCode(root) ? root.code : root.name);
}

// Outside Deno only codes prove that nothing was sent, because a proxy's error text can mention a refused connection, too.
function wasNeverSent(error: unknown): boolean {
  const causes = listCauses(error);
  const coded = causes.filter(hasCode);
  const isBeforeSending = ({ code, syscall = '' }: (typeof coded)[number]) =>
    NEVER_CONNECTED_CODES.has(code) || SYSTEM_CALLS_BEFORE_SENDING.has(syscall);
  // All codes must prove it, because a wrapper of `fetch` may have sent the request and retried.
  if (coded.length > 0) return coded.every(isBeforeSending);
  const root = causes.at(-1);
  return 'Deno' in globalThis && root !== undefined && DENO_NEVER_CONNECTED.test(root.message);
}

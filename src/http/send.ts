import ky from 'ky';
import { linkedController, onAbort } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
import type { Secret } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import type { TimeoutError, TimeoutPhase, TrackingError } from '../errors.ts';
import type { RequestOptions } from '../options.ts';
import type { CallErrors } from './call-errors.ts';
import { readFetchFailure } from './fetch-failure.ts';
import type { PreparedRequest } from './prepare.ts';
import { type RawResponse, type ResponseHead, readHead } from './response-head.ts';

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
  readonly #errors: CallErrors;
  readonly #totalTimeoutMs: number | undefined;
  readonly #endsAt: number = Number.POSITIVE_INFINITY;
  readonly #controller: AbortController | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(
    errors: CallErrors,
    { signal, totalTimeoutMs }: Pick<RequestOptions, 'signal' | 'totalTimeoutMs'>,
  ) {
    this.#errors = errors;
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
    const lastFailure = isBetweenAttempts ? this.lastFailure : undefined;
    const timeoutMs = this.#totalTimeoutMs ?? 0;
    const error = this.#errors.createTimeoutError('totalTimeoutMs', timeoutMs, this.phase, lastFailure);
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
        const expire = () => abort(this.#errors.createTimeoutError('timeoutMs', timeoutMs, this.phase));
        timer = systemClock.setTimeout(expire, timeoutMs);
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
}

interface AttemptOptions {
  readonly errors: CallErrors;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  /** Runs the function that sends the request. */
  readonly wrapFetch: (start: () => Promise<Response>) => Promise<Response>;
  readonly onSend: () => void;
  readonly onHeaders: (head: ResponseHead) => void;
}

export async function sendRequest(
  config: Config,
  request: PreparedRequest<unknown>,
  attempt: AttemptOptions,
): Promise<RawResponse> {
  const { errors, signal } = attempt;
  const { method, body } = request;
  const key = await readKey(config, errors);
  const headers = {
    ...config.headers,
    ...attempt.headers,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    authorization: `Bearer ${key.text}`,
  };
  let response: Response;
  try {
    response = await ky(config.baseUrl + request.target, {
      method,
      // p-retry retries instead of ky, because endpoints differ in what may be retried and each attempt takes a permit.
      retry: 0,
      // `Deadline` limits the time instead of ky, because ky stops its timer when the headers arrive, before the body.
      timeout: false,
      throwHttpErrors: false,
      fetch: (outgoing) =>
        attempt.wrapFetch(() => {
          attempt.onSend();
          // Read `fetch` at each request, because a test may mock it later. Pass a URL and plain options, because the `fetch` of
          // another library cannot read a `Request` of this runtime. Ky gets no headers and no body, because only its URL is used.
          const fetch = config.fetch ?? globalThis.fetch;
          const url = outgoing instanceof Request ? outgoing.url : String(outgoing);
          const init = {
            method,
            headers,
            ...(body !== undefined && { body }),
            // No redirect is followed, because the key would travel with it (docs/service.md 1.7).
            redirect: 'manual',
            signal,
          } as const;
          // Safe cast: `FetchResponse` has all that is read of a response, here and in ky.
          return fetch(url, init) as Promise<Response>;
        }),
    });
  } catch (cause) {
    signal.throwIfAborted();
    const failure = readFetchFailure(cause, config.fetch !== undefined, config.baseUrl.startsWith('http:'));
    throw errors.createConnectionError(cause, key, failure);
  }
  const head = readHead(response, key);
  attempt.onHeaders(head);
  // A `fetch` that ignores its signal may respond after the attempt has ended.
  signal.throwIfAborted();
  try {
    return { ...head, ...(await readBody(response, config.maxResponseBytes, key)) };
  } catch (cause) {
    signal.throwIfAborted();
    // The status is enough (docs/service.md 8.12): ignore a body that is cut off.
    if (request.response.isStatusEnough && response.ok) return { ...head, text: '', isCut: false };
    throw errors.createIncompleteError(cause, key);
  }
}

async function readKey({ apiKey }: Config, errors: CallErrors): Promise<Secret> {
  if (typeof apiKey !== 'function') return apiKey;
  try {
    return await apiKey();
  } catch (error) {
    throw errors.adopt(error);
  }
}

/** Drops a byte order mark, which `Buffer.toString` would keep. */
const decoder = new TextDecoder();

/** Reads at most `maxBytes`; the rest of a longer body is not read. The key is masked in the beginning of a longer body. */
async function readBody(
  response: Response,
  maxBytes: number,
  key: Secret,
): Promise<Pick<RawResponse, 'text' | 'isCut'>> {
  // A stub of `fetch` may return a body that is not a stream.
  if (typeof response.body?.getReader !== 'function') {
    const text = await response.text();
    const isCut = text.length > maxBytes;
    return { text: isCut ? key.maskBeginning(text, maxBytes) : text, isCut };
  }
  // Bytes are counted, because the declared length can be missing, or be that of the compressed body.
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= maxBytes) {
    const { done, value } = await reader.read();
    if (done) return { text: decoder.decode(Buffer.concat(chunks, bytes)), isCut: false };
    bytes += value.byteLength;
    chunks.push(value);
  }
  // `cancel` is not awaited, because a stream may never confirm that it was cancelled.
  reader.cancel().catch(() => {});
  const read = Buffer.concat(chunks, bytes);
  const text = decoder.decode(read);
  const maxLength = decoder.decode(read.subarray(0, maxBytes)).length;
  // What was read may end inside of a key. So leave out the end, in which a whole key could not be found.
  return { text: key.maskBeginning(text, Math.min(maxLength, text.length - key.maxLength)), isCut: true };
}

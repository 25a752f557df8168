import ky, { type KyInstance } from 'ky';
import { redactCause, redactText } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import { ConnectionError, ResponseValidationError } from '../errors.ts';
import { type Attempt, type CallResponse, requestIdOf } from './response.ts';

/** The one `ky` of a client. */
export function createKy({ baseUrl, headers }: Config): KyInstance {
  return ky.create({
    prefixUrl: baseUrl,
    headers,
    // Never followed: the key would travel with it.
    redirect: 'manual',
    // Decided by endpoint, with a new token for each attempt.
    retry: 0,
    throwHttpErrors: false,
    // It would end with the headers; an attempt's own timer covers the body.
    timeout: false,
  });
}

/** One attempt, ready to be sent. */
export interface OutgoingRequest<T> extends Attempt<T> {
  /** The caller's headers; they win over the client's. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Ends the attempt; its reason is the rejection. */
  readonly signal: AbortSignal;
  readonly onSend: () => void;
  readonly onHeaders: (response: Response) => void;
}

/** Sends one request and reads the whole response; rejects with the signal's reason on abort. */
export async function sendRequest<T>(
  client: KyInstance,
  config: Config,
  request: OutgoingRequest<T>,
): Promise<CallResponse<T>> {
  const { call, attempts, key, headers, signal } = request;
  const hasBody = call.body !== undefined;
  const extraHeaders = hasBody ? { ...headers, 'content-type': 'application/json' } : headers;
  let hasHeaders = false;
  try {
    const response = await client(call.target.slice(1), {
      method: call.method,
      ...(hasBody ? { body: call.body } : {}),
      // Left out where there are none: `ky` copies the client's once more to merge them.
      ...(extraHeaders === undefined ? {} : { headers: extraHeaders }),
      hooks: {
        beforeRequest: [
          (outgoing) => {
            outgoing.headers.set('authorization', `Bearer ${key}`);
            request.onSend();
          },
        ],
      },
      // Looked up now, so that mocks installed later work. Our signal goes to `fetch` directly: by way of ky it would pass
      // three derived signals, and a `fetch` that reads only its second argument would never see it.
      fetch: (outgoing) => (config.fetch ?? globalThis.fetch)(outgoing, { signal }),
    });
    request.onHeaders(response);
    hasHeaders = true;
    // A `fetch` that ignores its signal may answer when the attempt is over: then nothing of it counts any more.
    signal.throwIfAborted();
    // What the status has said, a body that breaks off or is too long does not take back.
    const isEnough = call.response.isStatusEnough === true && response.ok;
    const text = await readBody(response, config.maxAnswerBytes).catch((cause: unknown) => {
      if (isEnough) return '';
      throw cause;
    });
    signal.throwIfAborted();
    const { status, statusText, headers: received } = response;
    const read = { call, attempts, key, status, statusText, headers: received, text: text ?? '' };
    if (text === undefined && !isEnough) throw tooLong(read, config.maxAnswerBytes);
    return read;
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof ResponseValidationError) throw cause;
    const what = hasHeaders ? 'got an answer that broke off' : 'got no answer';
    throw new ConnectionError(redactText(`${call.title} ${what}: ${rootMessage(cause)}`, key), {
      cause: redactCause(cause, key),
      neverSent: !hasHeaders && wasNeverSent(cause),
    });
  }
}

function tooLong<T>(response: CallResponse<T>, maxBytes: number): ResponseValidationError {
  const message = `Expected ${response.call.title} to answer with at most ${maxBytes} bytes (\`maxAnswerBytes\`), got more`;
  return new ResponseValidationError(message, {
    issues: [{ path: [], code: 'too_big', message }],
    body: undefined,
    status: response.status,
    requestId: requestIdOf(response),
  });
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
      // Not waited for: a stream may never answer.
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Reads a body as text; undefined when it is longer than `maxBytes`. `ky` reads without a bound. */
export async function readBody(response: Response, maxBytes: number): Promise<string | undefined> {
  const { headers, body } = response;
  // Of a body that is decompressed while it is read the size is unknown: it can be a thousand times longer.
  const declaredBytes = headers.has('content-encoding') ? null : headers.get('content-length');
  // What answers a HEAD request declares the length of a body that does not come. A stub may have no `body` at all.
  if (body !== null && Number(declaredBytes) > maxBytes) {
    body?.cancel().catch(() => {});
    return undefined;
  }
  // Counting costs time that an ordinary response need not pay for; what is no stream can't be counted while it is read.
  if (declaredBytes !== null || typeof body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > maxBytes ? undefined : text;
  }
  return await readCounted(body, maxBytes);
}

/** Codes that mean that there was no connection, in whatever error they come. */
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

/** System calls that come before the first byte: whatever they fail with, nothing was sent. */
const CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/** Deno has no codes; its own sentence says which step failed. A URL holds no space, so it can't pretend to be one. */
const DENO_NEVER_CONNECTED = /^error sending request for url \(\S+\): client error \(Connect\)/;

const DEEPEST_CAUSE = 5;

/** The error and its causes, outermost first; empty when it is none. */
function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  let current = error;
  while (current instanceof Error && causes.length <= DEEPEST_CAUSE) {
    causes.push(current);
    current = current.cause;
  }
  return causes;
}

function rootMessage(error: unknown): string {
  const root = causesOf(error).at(-1);
  if (root === undefined) return 'unknown failure';
  const code = 'code' in root && typeof root.code === 'string' ? root.code : undefined;
  return root.message === '' ? (code ?? root.name) : root.message;
}

/**
 * True when a failure of `fetch` proves that no byte of the request has left, so that even a paid call may be repeated.
 *
 * Codes are proof, words are not: an upstream's own error text can speak of a refused connection. An error that has
 * another code besides, as one of a wrapper that tries again by itself, proves nothing.
 */
export function wasNeverSent(error: unknown): boolean {
  const causes = causesOf(error);
  const coded = causes.filter((cause) => 'code' in cause && typeof cause.code === 'string');
  if (coded.length > 0) return coded.every(isNeverConnected);
  const root = causes.at(-1);
  return 'Deno' in globalThis && root !== undefined && DENO_NEVER_CONNECTED.test(root.message);
}

function isNeverConnected(error: Error): boolean {
  const { code, syscall } = Object(error);
  return NEVER_CONNECTED_CODES.has(code) || CALLS_BEFORE_SENDING.has(syscall);
}

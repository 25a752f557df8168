import ky from 'ky';
import { ConnectionError, type TimeoutPhase } from '../errors.ts';
import { redactCause, redactText } from '../redact.ts';

/** One request, ready to be sent. */
export interface OutgoingRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
  /** The key, which no error may show. */
  readonly secret: string;
  /** Ends the attempt; its reason is the rejection. */
  readonly signal: AbortSignal;
}

/** An answer that arrived whole. */
export interface RawAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
}

/** What the attempt waits for, for the error that names it. */
export interface Progress {
  phase: TimeoutPhase;
}

/** Codes of failures before a single byte of the request could have reached the service. */
const NEVER_SENT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
]);
const NEVER_SENT_MESSAGE = /connection refused|dns error|failed to lookup/i;
const DEEPEST_CAUSE = 5;

function wasNeverSent(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < DEEPEST_CAUSE && current instanceof Error; depth += 1) {
    if ('code' in current && typeof current.code === 'string' && NEVER_SENT_CODES.has(current.code))
      return true;
    if (NEVER_SENT_MESSAGE.test(current.message)) return true;
    current = current.cause;
  }
  return false;
}

function rootMessage(error: unknown): string {
  let current = error;
  for (
    let depth = 0;
    depth < DEEPEST_CAUSE && current instanceof Error && current.cause instanceof Error;
    depth += 1
  ) {
    current = current.cause;
  }
  if (!(current instanceof Error)) return 'unknown failure';
  const code = 'code' in current && typeof current.code === 'string' ? current.code : undefined;
  return current.message === '' ? (code ?? current.name) : current.message;
}

/**
 * Sends one request and reads the whole answer.
 *
 * @throws ConnectionError when no complete answer arrived; the signal's reason on abort
 */
export async function sendOnce(
  request: OutgoingRequest,
  progress: Progress,
  onHeaders: (response: Response) => void,
): Promise<RawAnswer> {
  const { url, method, headers, body, signal } = request;
  const send = request.fetch ?? globalThis.fetch;
  let answering: Promise<Response> | undefined;
  // Sent from ky's hook, with a request of our own: ky would clone its request for retries that it never makes here,
  // which costs more than the rest of ky. Asked twice, it still sends once.
  const sendOnlyOnce = () => {
    const init = { method, headers, redirect: 'manual', signal } as const;
    answering ??= send(url, body === undefined ? init : { ...init, body });
    return answering;
  };
  progress.phase = 'headers';
  try {
    const response = await ky(url, {
      method,
      hooks: { beforeRequest: [sendOnlyOnce] },
      fetch: sendOnlyOnce,
      retry: 0,
      timeout: false,
      throwHttpErrors: false,
    });
    onHeaders(response);
    // A `fetch` that ignores its signal may answer when the attempt is over: then nothing of it counts any more.
    signal.throwIfAborted();
    progress.phase = 'body';
    const text = await response.text();
    signal.throwIfAborted();
    return { status: response.status, statusText: response.statusText, headers: response.headers, text };
  } catch (cause) {
    signal.throwIfAborted();
    const where = progress.phase === 'body' ? 'The answer broke off' : 'The request got no answer';
    throw new ConnectionError(redactText(`${where}: ${rootMessage(cause)}`, request.secret), {
      cause: redactCause(cause, request.secret),
      neverSent: progress.phase === 'headers' && wasNeverSent(cause),
    });
  }
}

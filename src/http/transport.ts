import ky from 'ky';
import { redactCause, redactText } from '../common/secrets.ts';
import { ConnectionError, ResponseValidationError, type TimeoutPhase } from '../errors.ts';
import { causesOf, wasNeverSent } from './never-sent.ts';
import { readBody } from './read-body.ts';

/** One request, ready to be sent. */
export interface OutgoingRequest {
  readonly url: string;
  readonly method: string;
  /** Path template, for errors. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
  /** The key, which no error may show. */
  readonly secret: string;
  readonly maxAnswerBytes: number;
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

function rootMessage(error: unknown): string {
  const root = causesOf(error).at(-1);
  if (root === undefined) return 'unknown failure';
  const code = 'code' in root && typeof root.code === 'string' ? root.code : undefined;
  return root.message === '' ? (code ?? root.name) : root.message;
}

function tooLong({ method, path, maxAnswerBytes, secret }: OutgoingRequest, response: Response) {
  const message = `Expected ${method} ${path} to answer with at most ${maxAnswerBytes} bytes (\`maxAnswerBytes\`), got more`;
  const requestId = response.headers.get('x-request-id');
  return new ResponseValidationError(message, {
    issues: [{ path: [], code: 'too_big', message }],
    body: undefined,
    status: response.status,
    requestId: requestId === null ? undefined : redactText(requestId, secret),
  });
}

/**
 * Sends one request and reads the whole answer.
 *
 * @throws ConnectionError when no complete answer arrived; ResponseValidationError when it is too long; the signal's reason on abort
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
    const text = await readBody(response, request.maxAnswerBytes);
    signal.throwIfAborted();
    if (text === undefined) throw tooLong(request, response);
    return { status: response.status, statusText: response.statusText, headers: response.headers, text };
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof ResponseValidationError) throw cause;
    const where = progress.phase === 'body' ? 'The answer broke off' : 'The request got no answer';
    throw new ConnectionError(redactText(`${where}: ${rootMessage(cause)}`, request.secret), {
      cause: redactCause(cause, request.secret),
      neverSent: progress.phase === 'headers' && wasNeverSent(cause),
    });
  }
}

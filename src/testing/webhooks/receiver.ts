import { jsonOrText } from '../service/http.ts';

/** Where webhooks go: a URL, or a function with the shape of a Fetch API handler. */
export type WebhookTarget = string | URL | ((request: Request) => Response | Promise<Response>);

/** How a request to the receiver ended. */
export interface SendResult {
  /** The receiver's status; `null` when it threw, could not be reached or took too long. */
  readonly status: number | null;
  /** True for any 2xx whose JSON does not say `success: false`. */
  readonly succeeded: boolean;
}

interface SendOutcome extends SendResult {
  readonly responseBody: unknown;
  readonly responseHeaders: Readonly<Record<string, string>>;
}

interface Receiver {
  readonly target: WebhookTarget;
  readonly secret: string | undefined;
  readonly timeoutMs: number;
}

const FIRST_WAIT_MS = 15_000;
const MAX_WAIT_MS = 18 * 3_600_000;
/** Stands in the URL of the request when the receiver is a function. */
const FUNCTION_URL = 'http://webhook.test/';

async function send({ target, secret }: Receiver, signal: AbortSignal, body?: string) {
  const request = new Request(typeof target === 'function' ? FUNCTION_URL : target, {
    method: body === undefined ? 'HEAD' : 'POST',
    headers: {
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body ?? null,
    signal,
  });
  const response = await (typeof target === 'function' ? target(request) : globalThis.fetch(request));
  const text = await response.text();
  const responseBody = text === '' ? null : jsonOrText(text);
  const saysFailure = Object(responseBody).success === false;
  return {
    status: response.status,
    succeeded: response.ok && !saysFailure,
    responseBody,
    responseHeaders: Object.fromEntries(response.headers),
  };
}

/** How long the service waits after an attempt: doubled up to the longest, 19 waits take 5.9 of the contract's six days. */
export function getScheduledWaitMs(attempt: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), MAX_WAIT_MS);
}

/** How long a receiver asks to wait, in seconds or until a date (RFC 9110); 0 when it asks for nothing. */
export function getRetryAfterMs({ 'retry-after': value = '' }: SendOutcome['responseHeaders']): number {
  const delayMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(delayMs) ? 0 : Math.max(0, delayMs);
}

/** Sends one request to the receiver, a probe where there is no body; never rejects. */
export async function sendToReceiver(receiver: Receiver, body?: string): Promise<SendOutcome> {
  const noResponse = { status: null, succeeded: false, responseBody: null, responseHeaders: {} };
  const controller = new AbortController();
  const timer = globalThis.setTimeout(() => controller.abort(), receiver.timeoutMs);
  // A receiver that is a function may never look at the signal.
  const tooLate = new Promise<SendOutcome>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve(noResponse));
  });
  const result = send(receiver, controller.signal, body).catch(() => noResponse);
  try {
    return await Promise.race([result, tooLate]);
  } finally {
    globalThis.clearTimeout(timer);
  }
}

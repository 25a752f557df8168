// Specification: service.md 6; public contract, "Webhooks"

/** Where webhooks go: a URL, or a function with the shape of a Fetch API handler. */
export type WebhookTarget = string | URL | ((request: Request) => Response | Promise<Response>);

/** How a request to the receiver ended. */
export interface DeliveryResult {
  /** The receiver's status; `null` when it threw, could not be reached or took too long. */
  readonly status: number | null;
  /** True for any 2xx whose JSON does not say `success: false` (public contract). */
  readonly succeeded: boolean;
}

/** How a request ended, and the response where there was one. */
interface DeliveryOutcome extends DeliveryResult {
  readonly responseBody: unknown;
  readonly responseHeaders: Readonly<Record<string, string>>;
}

/** What is the same in every request to one receiver. */
interface Receiver {
  readonly target: WebhookTarget;
  readonly secret: string | undefined;
  readonly timeoutMs: number;
}

/** Stands in the URL of the request when the receiver is a function. */
const FUNCTION_URL = 'http://webhook.test/';

function toRequest({ target, secret }: Receiver, body: string | undefined, signal: AbortSignal): Request {
  const headers = new Headers(secret === undefined ? {} : { authorization: `Bearer ${secret}` });
  const url = typeof target === 'function' ? FUNCTION_URL : target;
  if (body === undefined) return new Request(url, { method: 'HEAD', headers, signal });
  headers.set('content-type', 'application/json');
  return new Request(url, { method: 'POST', headers, body, signal });
}

/** JSON becomes its value, other text stays. */
function parsedBody(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return text;
  }
}

async function send({ target }: Receiver, request: Request): Promise<DeliveryOutcome> {
  const response = await (typeof target === 'function' ? target(request) : globalThis.fetch(request));
  const responseBody = parsedBody(await response.text());
  const saysFailure =
    typeof responseBody === 'object' &&
    responseBody !== null &&
    'success' in responseBody &&
    responseBody.success === false;
  return {
    status: response.status,
    succeeded: response.ok && !saysFailure,
    responseBody,
    responseHeaders: Object.fromEntries(response.headers),
  };
}

/** Sends one request to the receiver, a probe where there is no body; never rejects. */
export async function deliver(receiver: Receiver, body?: string): Promise<DeliveryOutcome> {
  const noResponse = { status: null, succeeded: false, responseBody: null, responseHeaders: {} };
  const controller = new AbortController();
  const timer = globalThis.setTimeout(() => controller.abort(), receiver.timeoutMs);
  // A receiver that is a function may never look at the signal.
  const tooLate = new Promise<DeliveryOutcome>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve(noResponse));
  });
  const result = Promise.resolve()
    .then(() => send(receiver, toRequest(receiver, body, controller.signal)))
    .catch(() => noResponse);
  try {
    return await Promise.race([result, tooLate]);
  } finally {
    globalThis.clearTimeout(timer);
  }
}

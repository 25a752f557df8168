/** Where webhooks go: a URL, or a function with the shape of a Fetch API handler. */
export type WebhookTarget = string | URL | ((request: Request) => Response | Promise<Response>);

/** How a request to the receiver ended. */
export interface Answered {
  /** The receiver's status; `null` when it threw, could not be reached or took too long. */
  readonly status: number | null;
  /** True for any 2xx whose JSON does not say `success: false` (public contract). */
  readonly succeeded: boolean;
}

/** A request to the receiver; without a body it is a probe. */
export interface WebhookRequest {
  readonly body?: string;
  readonly secret: string | undefined;
  readonly timeoutMs: number;
}

/** Stands in the URL of the request when the receiver is a function. */
const FUNCTION_URL = 'http://webhook.test/';

function toRequest(target: WebhookTarget, { body, secret }: WebhookRequest, signal: AbortSignal): Request {
  const headers = new Headers(secret === undefined ? {} : { authorization: `Bearer ${secret}` });
  const url = typeof target === 'function' ? FUNCTION_URL : target;
  if (body === undefined) return new Request(url, { method: 'HEAD', headers, signal });
  headers.set('content-type', 'application/json');
  return new Request(url, { method: 'POST', headers, body, signal });
}

function saysNo(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'success' in body && body.success === false;
  } catch {
    return false;
  }
}

async function ask(target: WebhookTarget, request: Request): Promise<Answered> {
  const response = await (typeof target === 'function' ? target(request) : globalThis.fetch(request));
  const text = await response.text();
  return { status: response.status, succeeded: response.ok && !saysNo(text) };
}

/** Sends one request to the receiver; never rejects. */
export async function deliver(target: WebhookTarget, webhook: WebhookRequest): Promise<Answered> {
  const controller = new AbortController();
  const unanswered: Answered = { status: null, succeeded: false };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooLate = new Promise<Answered>((resolve) => {
    timer = globalThis.setTimeout(() => {
      controller.abort();
      resolve(unanswered);
    }, webhook.timeoutMs);
  });
  const answered = Promise.resolve()
    .then(() => ask(target, toRequest(target, webhook, controller.signal)))
    .catch(() => unanswered);
  try {
    return await Promise.race([answered, tooLate]);
  } finally {
    globalThis.clearTimeout(timer);
  }
}

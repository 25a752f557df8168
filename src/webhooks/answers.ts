import type { WebhookOutcome } from './report.ts';

/** Every way a webhook request is answered. */
export type WebhookAnswer =
  | WebhookOutcome
  | 'alive'
  | 'method_not_allowed'
  | 'unauthorized'
  | 'unsupported_media_type'
  | 'body_too_long'
  | 'invalid_body'
  | 'closing'
  | 'deadline';

interface AnswerRule {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** When to come again, in seconds; the sender may have a schedule of its own. */
  readonly retryAfterSeconds?: number;
}

/** 2xx only for what is done for good: for everything else the sender is the queue. */
const ANSWERS: Readonly<Record<WebhookAnswer, AnswerRule>> = {
  alive: { status: 200 },
  done: { status: 200 },
  invalid_body: { status: 400 },
  unauthorized: { status: 401, headers: { 'www-authenticate': 'Bearer' } },
  method_not_allowed: { status: 405, headers: { allow: 'HEAD, POST' } },
  body_too_long: { status: 413 },
  unsupported_media_type: { status: 415, headers: { 'accept-encoding': 'identity' } },
  rejected: { status: 422 },
  failed: { status: 500 },
  busy: { status: 503, retryAfterSeconds: 5 },
  interrupted: { status: 503, retryAfterSeconds: 5 },
  closing: { status: 503, retryAfterSeconds: 5 },
  unavailable: { status: 503, retryAfterSeconds: 30 },
  deadline: { status: 503, retryAfterSeconds: 30 },
};

/** Builds an answer; the sender looks at the status, and at `success` in a JSON body. */
export function answerWith(answer: WebhookAnswer, retryAfterMs?: number): Response {
  const { status, headers, retryAfterSeconds } = ANSWERS[answer];
  if (answer === 'alive') return new Response(null, { status });
  const response = Response.json(
    { success: status === 200, outcome: answer },
    { status, headers: { ...headers } },
  );
  const seconds =
    retryAfterMs === undefined ? retryAfterSeconds : Math.max(1, Math.ceil(retryAfterMs / 1000));
  if (seconds !== undefined) response.headers.set('retry-after', String(seconds));
  return response;
}

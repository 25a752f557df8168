import { checkCount, checkDelayMs, checkKnownOptions, checkTimeoutMs } from '../common/option-checks.ts';
import { sleep } from '../common/timing.ts';
import { kindOf } from '../common/validation.ts';
import {
  ConfigurationError,
  TrackingError,
  WebhookAuthenticationError,
  WebhookParseError,
} from '../errors.ts';
import { answerWith, type WebhookAnswer } from './answers.ts';
import { type WebhookSecret, webhookAuthenticator } from './authentication.ts';
import { toCallbacks, type WebhookCallbacks } from './callbacks.ts';
import { checkFunction } from './function-check.ts';
import type { WebhookProcessor, WebhookReport } from './report.ts';
import { readBody, refusedMediaType } from './request-body.ts';
import { tell } from './tell.ts';

/** Left between the last look at busy work and the deadline, for the answer to get out. */
const ANSWER_MARGIN_MS = 1_000;
/** What a forced shutdown leaves to give undone work back. */
const RELEASE_GRACE_MS = 1_000;

const OPTION_NAMES = [
  'secret',
  'allowUnauthenticated',
  'inbox',
  'maxBodyBytes',
  'deadlineMs',
  'handler',
  'onDelivery',
  'onProofOfDelivery',
  'onSnapshot',
  'onUnhandled',
  'onReport',
  'onRefused',
] as const satisfies readonly (keyof WebhookHandlerOptions)[];

/** Options of `createWebhookHandler`: what to call, and how to receive. */
export interface WebhookHandlerOptions<Extra extends object = object> extends WebhookCallbacks<Extra> {
  /** The account's webhook secret, or a list of several while it is being changed. Default: none, which needs `allowUnauthenticated`. */
  readonly secret?: WebhookSecret | undefined;
  /** Accepts webhooks from anyone when there is no `secret`. Default: false. */
  readonly allowUnauthenticated?: boolean | undefined;
  /** Usually a `WebhookInbox`. */
  readonly inbox: WebhookProcessor<Extra>;
  /** The longest body to read, in bytes. Default: 10,485,760 (10 MiB). */
  readonly maxBodyBytes?: number | undefined;
  /** When to answer though the work still goes on, in milliseconds; the sender waits about 15 s. Default: 12,000. */
  readonly deadlineMs?: number | undefined;
  /** Told how each webhook went, also after its deadline. */
  readonly onReport?: ((report: WebhookReport) => void) | undefined;
  /**
   * Told of each request that got no further: no secret, no JSON, too long; or an inbox that broke down. Default: writes
   * the last to `console.error`.
   */
  readonly onRefused?: ((error: unknown, request: Request) => void) | undefined;
}

/** Answers webhook requests; made by `createWebhookHandler`. */
export interface WebhookHandler {
  (request: Request): Promise<Response>;
  /**
   * Refuses new webhooks from now on with 503, and waits for the work under way.
   *
   * @param options - `timeoutMs`: when to give up, in milliseconds; callbacks are told by their `signal`, and what has not begun is given back. Default: none
   * @throws ConfigurationError when `timeoutMs` is not from 0 to 2,147,483,647; nothing is closed then
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

/**
 * Builds the function that answers the service's webhooks: 2xx only for what is durably handled, so that the sender
 * keeps and repeats the rest.
 *
 * @param options - see `WebhookHandlerOptions`
 * @returns a handler of web-standard requests; `toNodeHandler` fits it to `node:http`, Express and Fastify
 * @throws ConfigurationError when an option is missing or makes no sense, and without any secret
 * @specification service.md 6; public contract
 * @example
 * const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
 * const webhooks = createWebhookHandler({
 *   secret: process.env.WEBHOOK_SECRET,
 *   inbox,
 *   handler: async (event, { delivery }) => saveEvent(delivery.tracker.trackerId, event),
 * });
 * app.all('/webhooks', (c) => webhooks(c.req.raw)); // Hono
 */
export function createWebhookHandler<Extra extends object = object>(
  options: WebhookHandlerOptions<Extra>,
): WebhookHandler {
  const receiver = new Receiver(options);
  return Object.assign((request: Request) => receiver.receive(request), {
    close: (given?: { readonly timeoutMs?: number | undefined }) => receiver.close(given),
  });
}

class Receiver<Extra extends object> {
  readonly #inbox: WebhookProcessor<Extra>;
  readonly #callbacks: WebhookCallbacks<Extra>;
  readonly #authenticate: ((authorization: string | null) => void) | undefined;
  readonly #maxBodyBytes: number;
  readonly #deadlineMs: number;
  readonly #onReport: WebhookHandlerOptions['onReport'];
  readonly #onRefused: WebhookHandlerOptions['onRefused'];
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #shutdown = new AbortController();
  #closing = false;

  constructor(options: WebhookHandlerOptions<Extra>) {
    checkKnownOptions('options', options, OPTION_NAMES);
    const { secret, inbox } = options;
    if (typeof inbox?.process !== 'function') {
      throw new ConfigurationError(`Expected \`inbox\` to be a WebhookInbox, got ${kindOf(inbox)}`);
    }
    if (secret === undefined && options.allowUnauthenticated !== true) {
      throw new ConfigurationError(
        'Expected `secret` to be the webhook secret, got undefined; `allowUnauthenticated: true` does without',
      );
    }
    checkFunction('onReport', options.onReport);
    checkFunction('onRefused', options.onRefused);
    this.#inbox = inbox;
    this.#callbacks = toCallbacks(options);
    this.#authenticate = secret === undefined ? undefined : webhookAuthenticator(secret);
    this.#maxBodyBytes = checkCount('maxBodyBytes', options.maxBodyBytes ?? 10 * 2 ** 20, 1);
    this.#deadlineMs = checkTimeoutMs('deadlineMs', options.deadlineMs ?? 12_000);
    this.#onReport = options.onReport;
    this.#onRefused = options.onRefused ?? logBreakdown;
  }

  async receive(request: Request): Promise<Response> {
    if (request.method === 'HEAD') return answerWith('alive');
    if (request.method !== 'POST') return answerWith('method_not_allowed');
    try {
      this.#authenticate?.(request.headers.get('authorization'));
    } catch (error) {
      return this.#refuse(request, error, 'unauthorized');
    }
    if (this.#closing) return answerWith('closing');
    const work = this.#accept(request);
    this.#underWay.add(work);
    void work.then(() => this.#underWay.delete(work));
    return withinDeadline(work, this.#deadlineMs);
  }

  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    checkKnownOptions('options', options, ['timeoutMs']);
    const { timeoutMs } = options;
    if (timeoutMs !== undefined) checkDelayMs('timeoutMs', timeoutMs);
    this.#closing = true;
    const done = new AbortController();
    const allDone = Promise.all(this.#underWay).then(() => done.abort());
    if (timeoutMs === undefined) return allDone;
    // Ends early, by rejecting, when all is done.
    await sleep(timeoutMs, done.signal).catch(() => {});
    if (done.signal.aborted) return;
    this.#shutdown.abort(new TrackingError('The webhook handler was closed'));
    await sleep(RELEASE_GRACE_MS, done.signal).catch(() => {});
  }

  /** Never rejects. */
  async #accept(request: Request): Promise<Response> {
    const mediaTypeError = refusedMediaType(request.headers);
    if (mediaTypeError !== undefined) {
      return this.#refuse(request, new WebhookParseError(mediaTypeError), 'unsupported_media_type');
    }
    try {
      return await this.#readAndProcess(request, performance.now());
    } catch (error) {
      return this.#refuse(request, error, error instanceof WebhookParseError ? 'invalid_body' : 'failed');
    }
  }

  async #readAndProcess(request: Request, startedAt: number): Promise<Response> {
    const read = await readBody(request, this.#maxBodyBytes);
    if (read === undefined) {
      const error = new WebhookParseError(`Expected a body of at most ${this.#maxBodyBytes} bytes`);
      return this.#refuse(request, error, 'body_too_long');
    }
    const leftMs = this.#deadlineMs - (performance.now() - startedAt);
    const report = await this.#inbox.process(read.body, this.#callbacks, {
      busyBudgetMs: Math.max(0, leftMs - ANSWER_MARGIN_MS),
      signal: this.#shutdown.signal,
    });
    tell(this.#onReport, report);
    return answerWith(report.outcome, report.outcome === 'busy' ? report.retryAfterMs : undefined);
  }

  #refuse(request: Request, error: unknown, answer: WebhookAnswer): Response {
    tell(this.#onRefused, error, request);
    return answerWith(answer);
  }
}

async function withinDeadline(work: Promise<Response>, deadlineMs: number): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<Response>((resolve) => {
    timer = setTimeout(() => resolve(answerWith('deadline')), deadlineMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** What anyone can send is not worth a line, or anyone could fill the log. */
function logBreakdown(error: unknown): void {
  if (error instanceof WebhookAuthenticationError || error instanceof WebhookParseError) return;
  console.error('tracking-client: webhook answered with 500', { error });
}

// Specification: service.md 6; public contract

import { z } from 'zod';
import { sleep } from '../common/abort.ts';
import { isWorkerd } from '../common/clock.ts';
import {
  checkOptions,
  countOption,
  delayOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  switchOption,
  timeoutOption,
} from '../common/option-checks.ts';
import {
  ConfigurationError,
  TrackingError,
  WebhookAuthenticationError,
  WebhookParseError,
} from '../errors.ts';
import { formatError, type LogAdapter, type Logger, resolveLogger } from '../observability/logger.ts';
import { CALLBACK_OPTIONS, toCallbacks, type WebhookCallbacks } from './callbacks.ts';
import { notify, type WebhookOutcome, type WebhookProcessor, type WebhookReport } from './report.ts';
import {
  authenticatorOf,
  mediaTypeError,
  RefusalLog,
  readRequestBody,
  type WebhookSecretSource,
} from './request.ts';

/** Left between the last look at busy work and the deadline, for the response to get out. */
const RESPONSE_MARGIN_MS = 1_000;
/** What a forced shutdown leaves to give undone work back. */
const RELEASE_GRACE_MS = 1_000;

/** Options of `createWebhookHandler`: what to call, and how to receive. */
export interface WebhookHandlerOptions<Extra extends object = object> extends WebhookCallbacks<Extra> {
  /**
   * The account's webhook secret, a list of several while it is being changed, or a function that gives either for each webhook.
   * Default: none, which needs `allowUnauthenticated`.
   */
  readonly secret?: WebhookSecretSource | undefined;
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
   * Told of each request that got no further: no secret, no JSON, too long; or an inbox that broke down. Default: tells `logger`, of
   * the former in one line a minute.
   */
  readonly onRefused?: ((error: unknown, request: Request) => void) | undefined;
  /** Where lines go: the console, or a logger of pino, winston or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
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

const handlerOptions = z.strictObject({
  ...CALLBACK_OPTIONS,
  // Checked by what compares it.
  secret: z.custom<WebhookSecretSource>().optional(),
  allowUnauthenticated: switchOption.default(false),
  inbox: option<WebhookProcessor>('a WebhookInbox', (value) => hasMethods(value, 'process')),
  maxBodyBytes: countOption(1).default(10 * 2 ** 20),
  deadlineMs: timeoutOption.default(12_000),
  onReport: functionOption<NonNullable<WebhookHandlerOptions['onReport']>>().optional(),
  onRefused: functionOption<NonNullable<WebhookHandlerOptions['onRefused']>>().optional(),
  // Checked by what calls it.
  logger: z.custom<Logger>().optional(),
} satisfies OptionShape<WebhookHandlerOptions>);
const closeOptions = z.strictObject({ timeoutMs: delayOption.optional() });

class Receiver<Extra extends object> {
  readonly #inbox: WebhookProcessor<Extra>;
  readonly #callbacks: WebhookCallbacks<Extra>;
  readonly #authenticate: ReturnType<typeof authenticatorOf>;
  readonly #maxBodyBytes: number;
  readonly #deadlineMs: number;
  readonly #onReport: WebhookHandlerOptions['onReport'];
  readonly #onRefused: NonNullable<WebhookHandlerOptions['onRefused']>;
  readonly #underWay = new Set<Promise<unknown>>();
  /** One for all webhooks; in a Worker one each, for it belongs to the request that made it. */
  readonly #shutdowns = new Set<AbortController>();
  #isClosing = false;

  constructor(options: WebhookHandlerOptions<Extra>) {
    const given = checkOptions(handlerOptions, options);
    const { secret } = given;
    if (secret === undefined && !given.allowUnauthenticated) {
      throw new ConfigurationError(
        'Expected `secret` to be the webhook secret, got undefined; `allowUnauthenticated: true` does without',
      );
    }
    this.#inbox = options.inbox;
    const { handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled } = options;
    this.#callbacks = toCallbacks({ handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled });
    this.#authenticate = authenticatorOf(secret);
    this.#maxBodyBytes = given.maxBodyBytes;
    this.#deadlineMs = given.deadlineMs;
    this.#onReport = given.onReport;
    this.#onRefused = given.onRefused ?? logRefusals(resolveLogger(given.logger));
  }

  /** One webhook, from its request to our response. */
  async receive(request: Request): Promise<Response> {
    if (request.method === 'HEAD') return respond('alive');
    if (request.method !== 'POST') return respond('method_not_allowed');
    const work = this.#accept(request);
    this.#underWay.add(work);
    void work.then(() => this.#underWay.delete(work));
    return withinDeadline(work, this.#deadlineMs);
  }

  /** Never rejects. */
  async #accept(request: Request): Promise<Response> {
    const startedAt = performance.now();
    const shutdown = this.#shutdown();
    try {
      const asked = this.#authenticate?.(request.headers.get('authorization'));
      if (asked !== undefined) await asked;
      if (this.#isClosing) return respond('closing');
      const mismatch = mediaTypeError(request.headers);
      if (mismatch !== undefined) {
        return this.#reject(request, new WebhookParseError(mismatch), 'unsupported_media_type');
      }
      const read = await readRequestBody(request, this.#maxBodyBytes);
      if (read === undefined) {
        const error = new WebhookParseError(`Expected a body of at most ${this.#maxBodyBytes} bytes`);
        return this.#reject(request, error, 'body_too_long');
      }
      const leftMs = this.#deadlineMs - (performance.now() - startedAt);
      const report = await this.#inbox.process(read.body, this.#callbacks, {
        busyBudgetMs: Math.max(0, leftMs - RESPONSE_MARGIN_MS),
        signal: shutdown.signal,
      });
      notify(this.#onReport, report);
      return respond(report.outcome, report.outcome === 'busy' ? report.retryAfterMs : undefined);
    } catch (error) {
      if (error instanceof WebhookAuthenticationError) return this.#reject(request, error, 'unauthorized');
      return this.#reject(request, error, error instanceof WebhookParseError ? 'invalid_body' : 'failed');
    } finally {
      if (isWorkerd) this.#shutdowns.delete(shutdown);
    }
  }

  #shutdown(): AbortController {
    const [shared] = this.#shutdowns;
    if (shared !== undefined && !isWorkerd) return shared;
    const shutdown = new AbortController();
    this.#shutdowns.add(shutdown);
    return shutdown;
  }

  #reject(request: Request, error: unknown, kind: ResponseKind): Response {
    notify(this.#onRefused, error, request);
    return respond(kind);
  }

  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const { timeoutMs } = checkOptions(closeOptions, options);
    this.#isClosing = true;
    const done = new AbortController();
    const allDone = Promise.all(this.#underWay).then(() => done.abort());
    if (timeoutMs === undefined) return allDone;
    // Ends early, by rejecting, when all is done.
    await sleep(timeoutMs, done.signal).catch(() => {});
    if (done.signal.aborted) return;
    const error = new TrackingError('The webhook handler was closed');
    for (const shutdown of this.#shutdowns) shutdown.abort(error);
    await sleep(RELEASE_GRACE_MS, done.signal).catch(() => {});
  }
}

function withinDeadline(work: Promise<Response>, deadlineMs: number): Promise<Response> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(respond('deadline')), deadlineMs);
    void work.then((response) => {
      clearTimeout(timer);
      resolve(response);
    });
  });
}

function logRefusals(logger: LogAdapter): (error: unknown) => void {
  const refusals = new RefusalLog(logger);
  return (error) => {
    const isRefused = error instanceof WebhookAuthenticationError || error instanceof WebhookParseError;
    if (isRefused) refusals.add(error);
    else logger.error(`Answered a webhook with 500: ${formatError(error)}`, { err: error });
  };
}

/** Every way a webhook request is responded to. */
export type ResponseKind =
  | WebhookOutcome
  | 'alive'
  | 'method_not_allowed'
  | 'unauthorized'
  | 'unsupported_media_type'
  | 'body_too_long'
  | 'invalid_body'
  | 'closing'
  | 'deadline';

interface ResponseRule {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** When to come again, in seconds; the sender may have a schedule of its own. */
  readonly retryAfterSeconds?: number;
}

/** 2xx only for what is done for good: for everything else the sender is the queue. */
const RESPONSES: Readonly<Record<ResponseKind, ResponseRule>> = {
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

/** Builds a response; the sender looks at the status, and at `success` in a JSON body. */
export function respond(kind: ResponseKind, retryAfterMs?: number): Response {
  const { retryAfterSeconds, ...init } = RESPONSES[kind];
  if (kind === 'alive') return new Response(null, init);
  const response = Response.json({ success: init.status === 200, outcome: kind }, init);
  const seconds =
    retryAfterMs === undefined ? retryAfterSeconds : Math.max(1, Math.ceil(retryAfterMs / 1000));
  if (seconds !== undefined) response.headers.set('retry-after', String(seconds));
  return response;
}

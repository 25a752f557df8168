import * as z from 'zod';
import { callGuarded } from '../common/callbacks.ts';
import { checkOptions } from '../common/check-options.ts';
import { sleep, systemClock } from '../common/clock.ts';
import { readEnvironment } from '../common/environment.ts';
import {
  countOption,
  delayOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-schemas.ts';
import {
  ConfigurationError,
  TrackingError,
  WebhookAuthenticationError,
  WebhookParseError,
} from '../errors.ts';
import { formatError, type LogAdapter, limitLines, resolveLogger } from '../observability/logger.ts';
import type { DedupeStore } from './dedupe-store.ts';
import { WebhookInbox } from './inbox.ts';
import {
  CALLBACK_OPTIONS,
  checkCallbacks,
  DEFAULT_STORE_TIMEOUT_MS,
  type EventCallback,
  INBOX_OPTIONS,
  type InboxOptions,
  type ProcessOptions,
  type WebhookCallbacks,
  type WebhookInboxOptions,
} from './inbox-options.ts';
import type { WebhookOutcome, WebhookReport } from './items.ts';
import { MemoryDedupeStore } from './memory-store.ts';
import {
  buildAuthenticator,
  findMediaTypeError,
  readRequestBody,
  type WebhookSecretSource,
} from './request.ts';

/** Waiting for busy events ends this long before the deadline, so that the response is sent in time. */
const RESPONSE_MARGIN_MS = 1_000;

/** Options of `createWebhookHandler`: an `inbox`, or the options of the `WebhookInbox` that the handler makes. */
export type WebhookHandlerOptions = HandlerOptions & ({ readonly inbox?: undefined } | NoInboxOptions);

/** The options of an inbox are refused beside an `inbox`, except the logger, which the handler uses, too. */
type NoInboxOptions = { readonly [Name in Exclude<keyof WebhookInboxOptions, 'logger'>]?: undefined };

/** The part of a `WebhookInbox` that a handler uses. */
interface BodyProcessor {
  process(
    body: unknown,
    callbacks: EventCallback | WebhookCallbacks,
    options?: ProcessOptions,
  ): Promise<WebhookReport>;
}

interface HandlerOptions extends WebhookCallbacks, InboxOptions {
  /**
   * The secret, a list of secrets, a function, or `false`. `false` accepts webhooks from anyone.
   * Required: `undefined` is refused, so that a missing environment variable does not turn the check off. The function gets the
   * request, and can return `{ secret, account }` if webhooks of several accounts come in. If it returns nothing, the response is
   * 401.
   */
  readonly secret: WebhookSecretSource | false | undefined;
  /** Your own `WebhookInbox`. Default: a new inbox with `store`. */
  readonly inbox?: BodyProcessor | undefined;
  /** Remembers handled events. Default: a `MemoryDedupeStore`, which forgets them when the process ends. */
  readonly store?: DedupeStore | undefined;
  /** Maximum length of a body, in bytes. Default: 2,097,152 (2 MiB). */
  readonly maxBodyBytes?: number | undefined;
  /** Milliseconds after which the response is 503. The work goes on. The sender waits about 15 s. Default: 12,000. */
  readonly deadlineMs?: number | undefined;
  /**
   * Called with the outcome and the counts of each webhook. It is called when the inbox is done with the webhook, also after a
   * failure and after `deadlineMs`. Default: none.
   */
  readonly onReport?: ((report: WebhookReport) => void) | undefined;
  /**
   * Called for each request that gets 400, 401, 413 or 415. It is also called for a request that gets 500, because your function
   * `secret` or your own `inbox` failed, or because other code has read the body. Default: writes to `logger`, at most one line a
   * minute for each reason.
   */
  readonly onRefused?: ((error: unknown, request: Request) => void) | undefined;
  /** Counts webhooks: `webhookMetrics()`, or your own object. Default: none. */
  readonly metrics?: WebhookMetrics | undefined;
}

/** Counts webhooks and refused requests, beside your own `onReport` and `onRefused`. */
export interface WebhookMetrics {
  /**
   * Called when the inbox is done with a webhook.
   *
   * @param report - outcome and counts of the webhook
   */
  recordReport(report: WebhookReport): void;
  /**
   * Called for each request that is refused before it gets to the inbox.
   *
   * @param refusal - reason and status
   */
  recordRefusal(refusal: WebhookRefusal): void;
}

/** A request that was refused. */
export interface WebhookRefusal {
  /** The `outcome` in the body of the response. */
  readonly reason:
    | 'unauthorized'
    | 'invalid_body'
    | 'body_too_long'
    | 'unsupported_media_type'
    | 'method_not_allowed'
    | 'failed'
    | 'closing';
  /** The status of the response. */
  readonly status: number;
}

/** Responds to webhook requests; made by `createWebhookHandler`. */
export interface WebhookHandler {
  (request: Request): Promise<Response>;
  /**
   * Refuses new webhooks and those that have not arrived completely with 503, and waits for the work under way. From then on, each
   * response closes its connection, so that `server.close()` can end.
   *
   * @param options - `timeoutMs`: milliseconds until the signals of running callbacks abort and no further callback starts. After
   * that, `close` still waits for commits and for the release of unfinished events, at most as long as one call of the store may
   * take. Default: no limit
   * @throws ConfigurationError when an option is invalid, such as a negative `timeoutMs`; nothing is closed then
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

/**
 * Builds a receiver of the service's webhooks. It responds to a webhook with 200 only when nothing is left to do
 * (docs/service.md 8.5).
 *
 * @param options - `secret` and a callback are required
 * @returns a handler of web-standard requests; `toNodeHandler` adapts it to `node:http`, Express, Fastify and Koa
 * @throws ConfigurationError when an option is missing or invalid
 * @example
 * const webhooks = createWebhookHandler({
 *   secret: process.env.WEBHOOK_SECRET,
 *   store: new RedisDedupeStore({ redis }),
 *   onEvent: async (event, { message }) => saveEvent(message.tracker.trackerId, event),
 * });
 * app.all('/webhooks', (c) => webhooks(c.req.raw)); // Hono
 */
export function createWebhookHandler(options: WebhookHandlerOptions): WebhookHandler {
  const { callbacks, authenticate, inbox, maxBodyBytes, deadlineMs, onReport, onRefused, metrics } =
    resolveHandlerOptions(options);
  /** The work of the inbox for each webhook. */
  const underWay = new Map<AbortController, Promise<unknown>>();
  /** The webhooks that the inbox does not have yet. */
  const arriving = new Set<AbortController>();
  let isClosing = false;

  async function receive(request: Request): Promise<Response> {
    const response = await answer(request);
    // Otherwise a client that goes on using its connection would keep `server.close()` from ending.
    if (isClosing) response.headers.set('connection', 'close');
    return response;
  }

  async function answer(request: Request): Promise<Response> {
    if (request.method === 'HEAD') return respond(isClosing ? 'closing' : 'alive', request);
    if (request.method !== 'POST') return refuse(request, 'method_not_allowed');
    // Aborts at the deadline while the body is read, and at a forced shutdown while the inbox works. Each webhook has a
    // controller of its own, because in a Cloudflare Worker a signal belongs to the request that made it.
    const controller = new AbortController();
    arriving.add(controller);
    return new Promise((resolve) => {
      const timer = systemClock.setTimeout(() => {
        // Work that the inbox has begun goes on after the deadline.
        if (arriving.has(controller)) controller.abort();
        resolve(respond('deadline', request));
      }, deadlineMs);
      void accept(request, controller).then((response) => {
        systemClock.clearTimeout(timer);
        arriving.delete(controller);
        resolve(response);
      });
    });
  }

  /** Never rejects. After the deadline nobody reads the response. */
  async function accept(request: Request, controller: AbortController): Promise<Response> {
    const { signal } = controller;
    const startedAt = systemClock.now();
    try {
      const account = await authenticate(request);
      if (isClosing) return refuse(request, 'closing');
      if (signal.aborted) return respond('deadline', request);
      const mismatch = findMediaTypeError(request);
      if (mismatch !== undefined) {
        return refuse(request, 'unsupported_media_type', new WebhookParseError(mismatch));
      }
      const read = await readRequestBody(request, maxBodyBytes, signal);
      // The sender redelivers what did not enter the inbox.
      if (isClosing) return refuse(request, 'closing');
      if (signal.aborted) return respond('deadline', request);
      if (read === undefined) {
        const message = `The webhook body is longer than ${maxBodyBytes} bytes (\`maxBodyBytes\`)`;
        return refuse(request, 'body_too_long', new WebhookParseError(message));
      }
      const leftMs = deadlineMs - (systemClock.now() - startedAt);
      const busyTimeoutMs = Math.max(0, leftMs - RESPONSE_MARGIN_MS);
      arriving.delete(controller);
      const work = inbox.process(read.body, callbacks, { busyTimeoutMs, signal, account });
      underWay.set(controller, work);
      const report = await work.finally(() => underWay.delete(controller));
      callGuarded(() => metrics?.recordReport(report));
      callGuarded(() => onReport?.(report));
      return respond(report.outcome, request, report.outcome === 'busy' ? report.retryAfterMs : undefined);
    } catch (error) {
      if (error instanceof WebhookAuthenticationError) return refuse(request, 'unauthorized', error);
      return refuse(request, error instanceof WebhookParseError ? 'invalid_body' : 'failed', error);
    }
  }

  /**
   * @param error - passed to `onRefused`, which is not called without an error. A wrong method has no error, and a handler that is
   * closing has none, because the service delivers the webhook again
   */
  function refuse(request: Request, reason: WebhookRefusal['reason'], error?: unknown): Response {
    const response = respond(reason, request);
    callGuarded(() => metrics?.recordRefusal({ reason, status: response.status }));
    if (error !== undefined) callGuarded(() => onRefused(error, request, reason));
    return response;
  }

  async function close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const { timeoutMs } = checkOptions(closeOptions, options);
    isClosing = true;
    // A body may arrive slowly, or never end.
    for (const controller of arriving) controller.abort();
    const done = new AbortController();
    const allDone = Promise.allSettled(underWay.values()).then(() => done.abort());
    if (timeoutMs === undefined) return allDone;
    // `sleep` rejects as soon as all work is done.
    await sleep(timeoutMs, done.signal).catch(() => {});
    if (done.signal.aborted) return;
    const error = new TrackingError('The webhook handler was closed');
    for (const controller of underWay.keys()) controller.abort(error);
    // A callback may ignore its signal, so wait no longer than the commits and releases can take.
    const graceMs = inbox instanceof WebhookInbox ? inbox.storeTimeoutMs : DEFAULT_STORE_TIMEOUT_MS;
    await sleep(graceMs, done.signal).catch(() => {});
  }

  return Object.assign(receive, { close });
}

const handlerOptions = z.strictObject({
  ...CALLBACK_OPTIONS,
  // `resolveInboxOptions` adds the defaults.
  ...z.object(INBOX_OPTIONS).partial().shape,
  // `buildAuthenticator` checks the secret.
  secret: z.custom<WebhookSecretSource | false>().optional(),
  inbox: option<WebhookHandlerOptions['inbox']>('a WebhookInbox (a store goes into `store`)', (value) =>
    hasMethods(value, 'process'),
  ).optional(),
  maxBodyBytes: countOption(1).default(2 * 2 ** 20),
  deadlineMs: timeoutOption.default(12_000),
  onReport: functionOption<NonNullable<WebhookHandlerOptions['onReport']>>().optional(),
  onRefused: functionOption<NonNullable<WebhookHandlerOptions['onRefused']>>().optional(),
  metrics: option<WebhookMetrics>('the object that `webhookMetrics()` returns', (value) =>
    hasMethods(value, 'recordReport', 'recordRefusal'),
  ).optional(),
} satisfies OptionShape<HandlerOptions>);
const closeOptions = z.strictObject({ timeoutMs: delayOption.optional() });

function resolveHandlerOptions(options: WebhookHandlerOptions) {
  const { secret, inbox, maxBodyBytes, deadlineMs, onReport, onRefused, metrics, ...others } = checkOptions(
    handlerOptions,
    options,
  );
  const { onEvent, onEvents, onProofOfDelivery, onOther, ...inboxOptions } = others;
  if (inbox !== undefined) rejectInboxOptions(options);
  const logRefusal = logRefusals(resolveLogger(inboxOptions.logger));
  return {
    callbacks: checkCallbacks({ onEvent, onEvents, onProofOfDelivery, onOther }),
    authenticate: buildAuthenticator(secret),
    inbox: inbox ?? createInbox(inboxOptions),
    maxBodyBytes,
    deadlineMs,
    onReport,
    metrics,
    onRefused: (error: unknown, request: Request, reason: WebhookRefusal['reason']) =>
      onRefused === undefined ? logRefusal(error, reason) : onRefused(error, request),
  };
}

function rejectInboxOptions({ logger, ...options }: WebhookHandlerOptions): void {
  const given = new Map<string, unknown>(Object.entries(options));
  const name = Object.keys(INBOX_OPTIONS).find((key) => given.get(key) !== undefined);
  if (name !== undefined)
    throw new ConfigurationError(
      `\`${name}\` is an option of the inbox; pass it to \`new WebhookInbox\`, not to the handler`,
    );
}

function createInbox(options: InboxOptions & Pick<HandlerOptions, 'store'>): WebhookInbox {
  if (options.store === undefined && readEnvironment('NODE_ENV') === 'production') {
    const line =
      'No `store` is set, so handled webhook events are remembered only until this process ends, and may then be handled again; ' +
      'pass a RedisDedupeStore or a PostgresDedupeStore as `store`';
    resolveLogger(options.logger).warn(line);
  }
  return new WebhookInbox({ ...options, store: options.store ?? new MemoryDedupeStore() });
}

/** Logs at most one line a minute for each reason, because anyone can send requests that are refused. */
function logRefusals(logger: LogAdapter) {
  const countLeftOut = limitLines();
  return (error: unknown, reason: WebhookRefusal['reason']) => {
    // Limit authentication errors for each message, which is a fixed text, so that lines about wrong tokens do not suppress lines
    // about missing tokens.
    const leftOut = countLeftOut(error instanceof WebhookAuthenticationError ? error.message : reason);
    if (leftOut === undefined) return;
    const fields = leftOut === 0 ? {} : { similarLinesLeftOut: leftOut };
    if (reason === 'failed')
      logger.error(`Responded to a webhook with 500: ${formatError(error)}`, { ...fields, err: error });
    else logger.warn(`Refused a webhook: ${formatError(error)}`, leftOut === 0 ? undefined : fields);
  };
}

const RETRY_SOON = { status: 503, headers: { 'retry-after': '5' } };
const RETRY_LATER = { status: 503, headers: { 'retry-after': '30' } };

/** A webhook gets a 200 only when nothing is left to do, because a 200 ends the redeliveries (docs/service.md 8.5). */
const RESPONSES = {
  alive: { status: 200 },
  done: { status: 200 },
  invalid_body: { status: 400 },
  unauthorized: { status: 401, headers: { 'www-authenticate': 'Bearer' } },
  method_not_allowed: { status: 405, headers: { allow: 'HEAD, POST' } },
  body_too_long: { status: 413 },
  unsupported_media_type: { status: 415, headers: { 'accept-encoding': 'identity' } },
  rejected: { status: 422 },
  failed: { status: 500 },
  busy: RETRY_SOON,
  interrupted: RETRY_SOON,
  closing: RETRY_SOON,
  unavailable: RETRY_LATER,
  deadline: RETRY_LATER,
} satisfies Record<string, ResponseInit> & Record<WebhookOutcome, ResponseInit>;
type ResponseKind = keyof typeof RESPONSES;

/** The sender reads the status, and `success` in a JSON body (docs/service.md 8.11). */
function respond(kind: ResponseKind, { method }: Request, retryAfterMs?: number): Response {
  const init = RESPONSES[kind];
  const body = { success: init.status === 200, outcome: kind };
  const response = method === 'HEAD' ? new Response(null, init) : Response.json(body, init);
  if (retryAfterMs !== undefined) {
    response.headers.set('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  }
  return response;
}

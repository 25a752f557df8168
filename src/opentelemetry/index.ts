/**
 * Spans and metrics of calls, polls and webhooks, through `@opentelemetry/api`.
 * @module tracking-client/opentelemetry
 */

import {
  type Attributes,
  type BatchObservableCallback,
  context,
  type Meter,
  type MeterProvider,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import * as z from 'zod';
import type { TrackingClient } from '../client.ts';
import { checkOptions, refuseOption } from '../common/check-options.ts';
import { readError } from '../common/foreign.ts';
import { hasMethods, type OptionShape, option } from '../common/option-schemas.ts';
import { isTrackingError, ResultsNotReadyError } from '../errors.ts';
import type { CallInfo, ErrorInfo, Hooks, ResponseInfo } from '../observability/hooks.ts';
import { VERSION } from '../version.ts';
// Only a type is imported, because a program that traces its calls must not load the receiver of webhooks.
import type { WebhookMetrics } from '../webhooks/handler.ts';

const NAME = 'tracking-client';

/** Options of `telemetryHooks`, `observeRateLimits` and `webhookMetrics`. */
export interface TelemetryOptions {
  /** Creates the spans. Default: the provider that is registered with `@opentelemetry/api`. */
  readonly tracerProvider?: TracerProvider | undefined;
  /**
   * Creates the metrics. Default: the provider that is registered with `@opentelemetry/api` at the first call, poll or webhook, or
   * when `observeRateLimits` is called.
   */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * Creates spans of attempts and the metric `http.client.request.duration`. Set `false` if an instrumentation of `fetch`, such
   * as `@opentelemetry/instrumentation-undici`, creates a span of each request: that span is then a child of the span of the call.
   * Default true.
   */
  readonly attempts?: boolean | undefined;
}

const telemetryOptions = z.strictObject({
  tracerProvider: option<TracerProvider>('a TracerProvider', (value) =>
    hasMethods(value, 'getTracer'),
  ).optional(),
  meterProvider: option<MeterProvider>('a MeterProvider', (value) =>
    hasMethods(value, 'getMeter'),
  ).optional(),
  attempts: z.boolean().default(true),
} satisfies OptionShape<TelemetryOptions>);

function resolveTelemetry<Metrics>(options: TelemetryOptions, createMetrics: (meter: Meter) => Metrics) {
  const checked = checkOptions(telemetryOptions, options, 'telemetry');
  const { tracerProvider = trace.getTracerProvider(), meterProvider, attempts } = checked;
  let created: Metrics | undefined;
  return {
    tracer: tracerProvider.getTracer(NAME, VERSION),
    hasAttempts: attempts,
    // A meter created before its provider is registered never counts anything, so metrics are created at their first use.
    getMetrics: (): Metrics => {
      created ??= createMetrics((meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, VERSION));
      return created;
    },
  };
}

/**
 * The boundaries go up to 15 minutes, because calls and polls can wait. The default boundaries of a provider are made for
 * milliseconds, but these metrics are in seconds.
 */
const BOUNDARIES_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];
const SECONDS = { unit: 's', advice: { explicitBucketBoundaries: BOUNDARIES_S } };
const HTTP_CONVENTION_BOUNDARIES_S = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

function createCallMetrics(meter: Meter) {
  return {
    requestDuration: meter.createHistogram('http.client.request.duration', {
      unit: 's',
      advice: { explicitBucketBoundaries: HTTP_CONVENTION_BOUNDARIES_S },
      description: 'Duration of HTTP client requests',
    }),
    callDuration: meter.createHistogram('tracking_client.call.duration', {
      ...SECONDS,
      description: 'Duration of calls, with all queueing, attempts and waits',
    }),
    queueDuration: meter.createHistogram('tracking_client.queue.duration', {
      ...SECONDS,
      description: 'Time that all attempts of a call waited for the rate limit',
    }),
    rateLimited: meter.createCounter('tracking_client.rate_limited', {
      unit: '{response}',
      description: 'Responses with status 429',
    }),
    retries: meter.createCounter('tracking_client.retries', {
      unit: '{attempt}',
      description: 'Failed attempts that were followed by another one',
    }),
    retryWait: meter.createHistogram('tracking_client.retry.wait', {
      ...SECONDS,
      description: 'Shortest wait before another attempt',
    }),
    pollLag: meter.createHistogram('tracking_client.poll.lag', {
      ...SECONDS,
      description: 'Delay between the due time of a poll and its start',
    }),
    pollErrors: meter.createCounter('tracking_client.poll.errors', {
      unit: '{poll}',
      description: 'Polls that failed',
    }),
  };
}

interface OpenCall {
  readonly span: Span;
  readonly server: Attributes;
  readonly basePath: string;
  attempt: Span | undefined;
  reportedQueuedMs: number;
}

/**
 * Builds hooks that report every call to OpenTelemetry: a span for the call, a child span for each attempt, and metrics. No
 * attribute contains the id of a tracker, a tracking number or the key.
 *
 * @param options - see `TelemetryOptions`. Default: the providers that are registered with `@opentelemetry/api`
 * @returns hooks, for the option `hooks` of one client or several
 * @throws ConfigurationError for an unknown option, or a value that is not a provider
 * @example
 * const client = new TrackingClient({ hooks: telemetryHooks() });
 */
export function telemetryHooks(options: TelemetryOptions = {}): Hooks {
  const { tracer, hasAttempts, getMetrics } = resolveTelemetry(options, createCallMetrics);
  const calls = new Map<string, OpenCall>();
  const noteQueued = (call: OpenCall, queuedMs: number) => {
    call.reportedQueuedMs += queuedMs;
    call.span.addEvent('tracking_client.queued', { 'tracking_client.queued_ms': queuedMs });
  };
  const endAttempt = (
    { callId, method, durationMs }: ResponseInfo | ErrorInfo,
    result: Attributes,
    describe: (span: Span) => void,
  ) => {
    const call = calls.get(callId);
    if (call?.attempt === undefined) return;
    const attributes = { 'http.request.method': method, ...call.server, ...result };
    getMetrics().requestDuration.record(durationMs / 1000, attributes);
    describe(call.attempt.setAttributes(result));
    call.attempt.end();
  };
  return {
    onStart: ({ callId, endpoint, baseUrl }) => {
      const url = new URL(baseUrl);
      const server = describeServer(url);
      const basePath = url.pathname.replace(/\/$/, '');
      const attributes = {
        'tracking_client.call_id': callId,
        'tracking_client.endpoint': endpoint,
        ...server,
      };
      const span = tracer.startSpan(endpoint, { kind: SpanKind.INTERNAL, attributes });
      calls.set(callId, { span, server, basePath, attempt: undefined, reportedQueuedMs: 0 });
    },
    aroundAttempt: async ({ callId, endpoint, path, method, attempt }, send) => {
      const call = calls.get(callId);
      if (call === undefined) return await send();
      const inCall = trace.setSpan(context.active(), call.span);
      if (!hasAttempts) return await context.with(inCall, send);
      // A path outside the table may contain ids.
      const template = endpoint === 'request' ? undefined : call.basePath + path;
      const attributes = {
        'http.request.method': method,
        ...call.server,
        ...(template === undefined ? {} : { 'url.template': template }),
        ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
      };
      const name = template === undefined ? method : `${method} ${template}`;
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, inCall);
      call.attempt = span;
      try {
        return await context.with(trace.setSpan(inCall, span), send);
      } catch (error) {
        // If the attempt ended before its request was sent, no `onError` has ended the span.
        if (span.isRecording()) {
          fail(span, error, endpoint);
          span.end();
        }
        throw error;
      }
    },
    onRequest: ({ callId, queuedMs }) => {
      const call = calls.get(callId);
      if (call !== undefined) noteQueued(call, queuedMs);
    },
    onResponse: (info) => {
      const { status, requestId } = info;
      const errorType = status >= 400 ? { 'error.type': String(status) } : {};
      endAttempt(info, { 'http.response.status_code': status, ...errorType }, (span) => {
        if (requestId !== undefined) span.setAttribute('http.response.header.x-request-id', [requestId]);
        if (status >= 400) span.setStatus({ code: SpanStatusCode.ERROR });
      });
    },
    onError: (info) =>
      endAttempt(info, { 'error.type': getErrorType(info.error) }, (span) =>
        fail(span, info.error, info.endpoint),
      ),
    onRetry: ({ callId, endpoint, error, retryAfterMs, waitMs }) => {
      const errorType = { 'error.type': error.name };
      const asked = retryAfterMs === undefined ? {} : { 'tracking_client.retry_after_ms': retryAfterMs };
      const waits = { ...asked, 'tracking_client.wait_ms': waitMs };
      calls.get(callId)?.span.addEvent('tracking_client.retry', { ...errorType, ...waits });
      const attributes = { 'tracking_client.endpoint': endpoint, ...errorType };
      getMetrics().retries.add(1, attributes);
      getMetrics().retryWait.record(waitMs / 1000, attributes);
    },
    onRateLimit: ({ callId, endpoint, delayMs }) => {
      calls
        .get(callId)
        ?.span.addEvent('tracking_client.rate_limited', { 'tracking_client.delay_ms': delayMs });
      getMetrics().rateLimited.add(1, { 'tracking_client.endpoint': endpoint });
    },
    onDone: ({ callId, endpoint, error, attempts, queuedMs, durationMs }) => {
      const { callDuration, queueDuration } = getMetrics();
      const attributes: Attributes = { 'tracking_client.endpoint': endpoint };
      // A poll often finds no results yet, which is not an error.
      const isNotReady = error instanceof ResultsNotReadyError;
      const errorType = error === undefined || isNotReady ? {} : { 'error.type': getErrorType(error) };
      queueDuration.record(queuedMs / 1000, attributes);
      callDuration.record(durationMs / 1000, { ...attributes, ...errorType });
      const call = calls.get(callId);
      if (call === undefined) return;
      calls.delete(callId);
      // If an abort or a timeout ended the last wait in the queue, no `onRequest` followed, so report this wait here.
      if (queuedMs > call.reportedQueuedMs) noteQueued(call, queuedMs - call.reportedQueuedMs);
      call.span.setAttribute('tracking_client.attempts', attempts);
      if (isNotReady) call.span.setAttribute('tracking_client.results_ready', false);
      else if (error !== undefined) fail(call.span, error, endpoint);
      call.span.end();
    },
    onPoll: ({ lagMs }) => getMetrics().pollLag.record(lagMs / 1000),
    onPollError: ({ error }) => getMetrics().pollErrors.add(1, { 'error.type': getErrorType(error) }),
  };
}

function describeServer({ hostname, port, protocol }: URL): Attributes {
  return {
    // `URL` puts an IPv6 address in brackets; the attribute has none.
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  };
}

function getErrorType(error: unknown): string {
  return readError(error)?.name ?? '_OTHER';
}

/**
 * Marks a span as failed. The message is kept only for our own errors: other errors, such as a signal's reason, may contain
 * secrets. For a path outside the table the message is left out, too, because it quotes the path, which may contain ids.
 */
function fail(span: Span, error: unknown, endpoint: CallInfo['endpoint']): void {
  const message = isTrackingError(error) && endpoint !== 'request' ? { message: error.message } : {};
  span.setAttribute('error.type', getErrorType(error)).setStatus({ code: SpanStatusCode.ERROR, ...message });
}

function createRateLimitMetrics(meter: Meter) {
  return {
    meter,
    queueLength: meter.createObservableUpDownCounter('tracking_client.queue.length', {
      unit: '{call}',
      description: 'Calls that wait for the rate limit',
    }),
    pauseRemaining: meter.createObservableGauge('tracking_client.pause.remaining', {
      unit: 's',
      description: 'Time until the pause after a response with status 429 ends',
    }),
  };
}

type RateLimited = Pick<TrackingClient, 'rateLimits'>;

/**
 * Reports for each endpoint how many calls wait for the rate limit and how long its pause lasts, each time that metrics are
 * collected. It reads `client.rateLimits()`, so it works with every limiter. With several clients it reports the sum of the
 * waiting calls and the longest pause. Call it once in a process, after you have registered your provider: a second call would
 * replace the values of the first one.
 *
 * @param clients - the client, or a function that returns the clients of this moment. If clients of one account share a limiter,
 * give only one of them, because each of them counts all waiting calls
 * @param telemetry - see `TelemetryOptions`; only `meterProvider` is used. Default: the provider that is registered now
 * @returns a function that ends the reports and forgets the clients. The SDK still exports the last values
 * @throws ConfigurationError if `clients` or an option is invalid
 * @example
 * const stop = observeRateLimits(client);
 * @example
 * observeRateLimits(() => clientsByAccount.values());
 */
export function observeRateLimits(
  clients: RateLimited | (() => Iterable<RateLimited>),
  telemetry: TelemetryOptions = {},
): () => void {
  if (typeof clients !== 'function' && !hasMethods(clients, 'rateLimits'))
    refuseOption('clients', 'a TrackingClient, or a function that returns several', clients);
  const { getMetrics } = resolveTelemetry(telemetry, createRateLimitMetrics);
  const { meter, queueLength, pauseRemaining } = getMetrics();
  // Kept, so that an endpoint whose clients are gone is reported as 0. Otherwise the SDK would repeat its last value.
  const totals = new Map<string, { queued: number; pauseMs: number }>();
  const observe: BatchObservableCallback = (result) => {
    const now = Date.now();
    for (const endpoint of totals.keys()) totals.set(endpoint, { queued: 0, pauseMs: 0 });
    for (const client of typeof clients === 'function' ? clients() : [clients]) {
      for (const [endpoint, { queued, pausedUntil }] of Object.entries(client.rateLimits())) {
        const total = totals.get(endpoint) ?? { queued: 0, pauseMs: 0 };
        const pauseMs = Math.max(total.pauseMs, (pausedUntil ?? now) - now);
        totals.set(endpoint, { queued: total.queued + queued, pauseMs });
      }
    }
    for (const [endpoint, { queued, pauseMs }] of totals) {
      const attributes = { 'tracking_client.endpoint': endpoint };
      result.observe(queueLength, queued, attributes);
      result.observe(pauseRemaining, pauseMs / 1000, attributes);
    }
  };
  const observables = [queueLength, pauseRemaining];
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

function createWebhookMetrics(meter: Meter) {
  return {
    webhooks: meter.createCounter('tracking_client.webhooks', {
      unit: '{request}',
      description: 'Webhooks that entered the inbox, by outcome',
    }),
    events: meter.createCounter('tracking_client.webhook.events', {
      unit: '{event}',
      description: 'Events and proofs of delivery in webhooks, by result',
    }),
    refused: meter.createCounter('tracking_client.webhook.refused', {
      unit: '{request}',
      description: 'Requests that were refused before their webhook entered the inbox, by reason and status',
    }),
  };
}

/**
 * Creates the metrics of webhooks, which no instrumentation of an HTTP server can create: the outcome of each webhook, how many events
 * were handled, duplicates, dead-lettered or failed, and why requests were refused.
 *
 * @param telemetry - see `TelemetryOptions`; the tracer is not used. Default: the provider registered with `@opentelemetry/api`
 * @returns the value of the option `metrics` of `createWebhookHandler`
 * @throws ConfigurationError if an option is invalid
 * @example
 * const webhooks = createWebhookHandler({ secret, store, onEvent, metrics: webhookMetrics() });
 */
export function webhookMetrics(telemetry: TelemetryOptions = {}): WebhookMetrics {
  const { getMetrics } = resolveTelemetry(telemetry, createWebhookMetrics);
  return {
    recordReport({ outcome, handled, duplicates, deadLettered, failures }) {
      const { webhooks, events } = getMetrics();
      webhooks.add(1, { 'tracking_client.webhook.outcome': outcome });
      const failed = failures.reduce((sum, { keys }) => sum + keys.length, 0);
      const counts = { handled, duplicate: duplicates, dead_lettered: deadLettered, failed };
      for (const [result, count] of Object.entries(counts)) {
        if (count > 0) events.add(count, { 'tracking_client.webhook.result': result });
      }
    },
    recordRefusal: ({ reason, status }) =>
      getMetrics().refused.add(1, {
        'tracking_client.webhook.reason': reason,
        'http.response.status_code': status,
      }),
  };
}

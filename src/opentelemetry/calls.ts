import {
  type Attributes,
  type Context,
  context,
  type Meter,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { isTrackingError } from '../errors.ts';
import type { Hooks } from '../observability/hooks.ts';
import { resolveTelemetry, type TelemetryOptions } from './scope.ts';

/** Seconds, up to 15 minutes, because calls and polls can wait; the default boundaries of a provider are milliseconds. */
const BOUNDARIES_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];
const SECONDS = { unit: 's', advice: { explicitBucketBoundaries: BOUNDARIES_S } };
/** The boundaries that the HTTP conventions of OpenTelemetry name. */
const HTTP_BOUNDARIES_S = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

function createMetrics(meter: Meter) {
  return {
    requestDuration: meter.createHistogram('http.client.request.duration', {
      unit: 's',
      advice: { explicitBucketBoundaries: HTTP_BOUNDARIES_S },
      description: 'Duration of HTTP client requests',
    }),
    callDuration: meter.createHistogram('tracking_client.call.duration', {
      ...SECONDS,
      description: 'From a call to its end, with all queueing, attempts and waits',
    }),
    queueDuration: meter.createHistogram('tracking_client.queue.duration', {
      ...SECONDS,
      description: 'How long all attempts of a call waited for the rate limit',
    }),
    rateLimited: meter.createCounter('tracking_client.rate_limited', {
      unit: '{response}',
      description: 'Responses with status 429',
    }),
    retries: meter.createCounter('tracking_client.retries', {
      unit: '{attempt}',
      description: 'Failed attempts that were followed by another one',
    }),
    pollLag: meter.createHistogram('tracking_client.poll.lag', {
      ...SECONDS,
      description: 'How long after it was due a poll was started',
    }),
  };
}

/** A call under way. */
interface OpenCall {
  readonly span: Span;
  /** Makes spans children of the call's. */
  readonly context: Context;
  readonly server: Attributes;
  /** Of the base URL, without a `/` at its end. */
  readonly basePath: string;
  attempt: Span | undefined;
  /** The part of the time in the queue that has its events, in milliseconds. */
  reportedQueuedMs: number;
}

/**
 * Makes hooks that tell OpenTelemetry of every call: an internal span for the call, a client span below it for each attempt,
 * and metrics.
 *
 * A call's span is a child of the span that is active where the method is called. Ids, tracking numbers and the key are in no
 * attribute.
 *
 * @param options - see `TelemetryOptions`. Default: the providers that are registered with `@opentelemetry/api`
 * @returns the option `hooks` of a client, or of several
 * @throws ConfigurationError when an option is unknown, or no provider
 * @example
 * const client = new TrackingClient({ hooks: telemetryHooks() });
 */
export function telemetryHooks(options: TelemetryOptions = {}): Hooks {
  const { tracer, hasAttempts, getMetrics } = resolveTelemetry(options, createMetrics);
  const calls = new Map<string, OpenCall>();
  const noteQueued = (call: OpenCall, queuedMs: number) => {
    call.reportedQueuedMs += queuedMs;
    call.span.addEvent('tracking_client.queued', { 'tracking_client.queued_ms': queuedMs });
  };
  const recordDuration = (
    call: OpenCall | undefined,
    method: string,
    durationMs: number,
    result: Attributes,
  ) => {
    if (call === undefined || !hasAttempts) return;
    const attributes = { 'http.request.method': method, ...call.server, ...result };
    getMetrics().requestDuration.record(durationMs / 1000, attributes);
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
      const within = trace.setSpan(context.active(), span);
      calls.set(callId, { span, context: within, server, basePath, attempt: undefined, reportedQueuedMs: 0 });
    },
    onRequest: ({ callId, endpoint, path, method, attempt, queuedMs }) => {
      const call = calls.get(callId);
      if (call === undefined) return;
      noteQueued(call, queuedMs);
      if (!hasAttempts) return;
      // A path outside the table may hold ids anywhere.
      const template = endpoint === 'request' ? undefined : call.basePath + path;
      const attributes = {
        'http.request.method': method,
        ...call.server,
        ...(template === undefined ? {} : { 'url.template': template }),
        ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
      };
      const name = template === undefined ? method : `${method} ${template}`;
      call.attempt = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, call.context);
    },
    onResponse: ({ callId, method, status, durationMs, requestId }) => {
      const call = calls.get(callId);
      const errorType = status >= 400 ? { 'error.type': String(status) } : {};
      recordDuration(call, method, durationMs, { 'http.response.status_code': status, ...errorType });
      const span = call?.attempt;
      span?.setAttribute('http.response.status_code', status);
      if (requestId !== undefined) span?.setAttribute('http.response.header.x-request-id', [requestId]);
      if (status >= 400)
        span?.setAttribute('error.type', String(status)).setStatus({ code: SpanStatusCode.ERROR });
      span?.end();
    },
    onError: ({ callId, method, error, durationMs }) => {
      const call = calls.get(callId);
      recordDuration(call, method, durationMs, { 'error.type': getErrorType(error) });
      const span = call?.attempt;
      if (span === undefined) return;
      fail(span, error);
      span.end();
    },
    onRetry: ({ callId, endpoint, error, retryAfterMs }) => {
      const attributes = { 'error.type': error.name };
      const wait = retryAfterMs === undefined ? {} : { 'tracking_client.retry_after_ms': retryAfterMs };
      calls.get(callId)?.span.addEvent('tracking_client.retry', { ...attributes, ...wait });
      getMetrics().retries.add(1, { 'tracking_client.endpoint': endpoint, ...attributes });
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
      queueDuration.record(queuedMs / 1000, attributes);
      callDuration.record(durationMs / 1000, {
        ...attributes,
        ...(error === undefined ? {} : { 'error.type': getErrorType(error) }),
      });
      const call = calls.get(callId);
      if (call === undefined) return;
      calls.delete(callId);
      // The last wait ended without a request: by an abort or a timeout.
      if (queuedMs > call.reportedQueuedMs) noteQueued(call, queuedMs - call.reportedQueuedMs);
      call.span.setAttribute('tracking_client.attempts', attempts);
      if (error !== undefined) fail(call.span, error);
      call.span.end();
    },
    onPoll: ({ lagMs }) => getMetrics().pollLag.record(lagMs / 1000),
  };
}

function describeServer({ hostname, port, protocol }: URL): Attributes {
  return {
    // A URL holds an IPv6 address in brackets.
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  };
}

function getErrorType(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}

/** Marks a span as failed. The message of a foreign error, as the reason of a signal, may hold anything, so it is left out. */
function fail(span: Span, error: unknown): void {
  const message = isTrackingError(error) ? { message: error.message } : {};
  span.setAttribute('error.type', getErrorType(error)).setStatus({ code: SpanStatusCode.ERROR, ...message });
}

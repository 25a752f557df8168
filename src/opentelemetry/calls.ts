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
import { scopeOf, type TelemetryOptions } from './scope.ts';

/** In seconds; those that a provider has by itself are meant for milliseconds. Up to 15 minutes, for calls and polls can wait. */
const BOUNDARIES_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];
const SECONDS = { unit: 's', advice: { explicitBucketBoundaries: BOUNDARIES_S } };

function createMetrics(meter: Meter) {
  return {
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
  /** How much of the time in the queue was told by events, in milliseconds. */
  toldQueuedMs: number;
}

/**
 * Makes hooks that tell OpenTelemetry of every call: a client span a call, with a child span for each attempt, and metrics.
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
  const { tracer, metricsOf } = scopeOf(options, createMetrics);
  const calls = new Map<string, OpenCall>();
  const noteQueued = (call: OpenCall, queuedMs: number) => {
    call.toldQueuedMs += queuedMs;
    call.span.addEvent('tracking_client.queued', { 'tracking_client.queued_ms': queuedMs });
  };
  return {
    onStart: ({ callId, endpoint, baseUrl }) => {
      const url = new URL(baseUrl);
      const server = serverOf(url);
      const basePath = url.pathname.replace(/\/$/, '');
      const attributes = {
        'tracking_client.call_id': callId,
        'tracking_client.endpoint': endpoint,
        ...server,
      };
      const span = tracer.startSpan(endpoint, { kind: SpanKind.CLIENT, attributes });
      const within = trace.setSpan(context.active(), span);
      calls.set(callId, { span, context: within, server, basePath, attempt: undefined, toldQueuedMs: 0 });
    },
    onRequest: ({ callId, endpoint, path, method, attempt, queuedMs }) => {
      const call = calls.get(callId);
      if (call === undefined) return;
      noteQueued(call, queuedMs);
      // Of a path outside the table nothing is known of which of its parts are ids.
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
    onResponse: ({ callId, status, requestId }) => {
      const span = calls.get(callId)?.attempt;
      span?.setAttribute('http.response.status_code', status);
      if (requestId !== undefined) span?.setAttribute('http.response.header.x-request-id', [requestId]);
      if (status >= 400)
        span?.setAttribute('error.type', String(status)).setStatus({ code: SpanStatusCode.ERROR });
      span?.end();
    },
    onError: ({ callId, error }) => {
      const span = calls.get(callId)?.attempt;
      if (span === undefined) return;
      fail(span, error);
      span.end();
    },
    onRetry: ({ callId, endpoint, error, retryAfterMs }) => {
      const attributes = { 'error.type': error.name };
      const wait = retryAfterMs === undefined ? {} : { 'tracking_client.retry_after_ms': retryAfterMs };
      calls.get(callId)?.span.addEvent('tracking_client.retry', { ...attributes, ...wait });
      metricsOf().retries.add(1, { 'tracking_client.endpoint': endpoint, ...attributes });
    },
    onRateLimit: ({ callId, endpoint, delayMs }) => {
      calls
        .get(callId)
        ?.span.addEvent('tracking_client.rate_limited', { 'tracking_client.delay_ms': delayMs });
      metricsOf().rateLimited.add(1, { 'tracking_client.endpoint': endpoint });
    },
    onDone: ({ callId, endpoint, error, attempts, queuedMs, durationMs }) => {
      const { callDuration, queueDuration } = metricsOf();
      const attributes: Attributes = { 'tracking_client.endpoint': endpoint };
      queueDuration.record(queuedMs / 1000, attributes);
      callDuration.record(durationMs / 1000, {
        ...attributes,
        ...(error === undefined ? {} : { 'error.type': typeOf(error) }),
      });
      const call = calls.get(callId);
      if (call === undefined) return;
      calls.delete(callId);
      // A wait that ended without a request: by an abort, or for want of time.
      if (queuedMs > call.toldQueuedMs) noteQueued(call, queuedMs - call.toldQueuedMs);
      call.span.setAttribute('tracking_client.attempts', attempts);
      if (error !== undefined) fail(call.span, error);
      call.span.end();
    },
    onPoll: ({ lagMs }) => metricsOf().pollLag.record(lagMs / 1000),
  };
}

function serverOf({ hostname, port, protocol }: URL): Attributes {
  return {
    // Of IPv6, a URL holds it in brackets.
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  };
}

function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}

/** Of an error that is not ours, as the reason of a signal, the message may hold anything. */
function fail(span: Span, error: unknown): void {
  const message = isTrackingError(error) ? { message: error.message } : {};
  span.setAttribute('error.type', typeOf(error)).setStatus({ code: SpanStatusCode.ERROR, ...message });
}

import {
  type Attributes,
  context,
  type Meter,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { readError } from '../common/foreign.ts';
import { isTrackingError, ResultsNotReadyError } from '../errors.ts';
import type { CallInfo, ErrorInfo, Hooks, ResponseInfo } from '../observability/hooks.ts';
import { resolveTelemetry, type TelemetryOptions } from './telemetry.ts';

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

import { context, type Meter, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import * as z from 'zod';
import { callGuarded } from '../common/guarded-call.ts';
import { checkOptions, functionOption } from '../common/option-checks.ts';
import {
  createWebhookHandler,
  type WebhookHandler,
  type WebhookHandlerOptions,
} from '../webhooks/handler.ts';
import type { WebhookReport } from '../webhooks/processor.ts';
import { resolveTelemetry, type TelemetryOptions } from './scope.ts';

function createMetrics(meter: Meter) {
  return {
    webhooks: meter.createCounter('tracking_client.webhooks', {
      unit: '{request}',
      description: 'Webhook requests, by what became of them',
    }),
    duplicates: meter.createCounter('tracking_client.webhook.duplicates', {
      unit: '{event}',
      description: 'Events and proofs of delivery that were handled before, or repeated inside a webhook',
    }),
  };
}

const onReportOption = z.object({
  onReport: functionOption<NonNullable<WebhookHandlerOptions['onReport']>>().optional(),
});

/**
 * Does what `createWebhookHandler` does, and tells OpenTelemetry of every webhook: a span each, and metrics. The span is a child
 * of the span of your HTTP server where there is one, and a server span where there is none.
 *
 * The span ends with the response, and is the parent of the spans that your callbacks make. Tracker ids, tracking numbers and the
 * secret are in no attribute.
 *
 * @param options - see `WebhookHandlerOptions`
 * @param telemetry - see `TelemetryOptions`. Default: the providers that are registered with `@opentelemetry/api`
 * @returns a handler of web-standard requests; `toNodeHandler` fits it to `node:http`, Express and Fastify
 * @throws ConfigurationError when an option is missing or makes no sense, and without any secret
 * @example
 * const webhooks = tracedWebhookHandler({ secret, store, onEvent: (event) => saveEvent(event) });
 */
export function tracedWebhookHandler<Extra extends object = object>(
  options: WebhookHandlerOptions<Extra>,
  telemetry: TelemetryOptions = {},
): WebhookHandler {
  const { tracer, getMetrics } = resolveTelemetry(telemetry, createMetrics);
  const { onReport } = checkOptions(onReportOption, options);
  const handler = createWebhookHandler({
    ...options,
    onReport: (report: WebhookReport) => {
      const { handled, duplicates } = report;
      if (duplicates > 0) getMetrics().duplicates.add(duplicates);
      const span = trace.getActiveSpan();
      // No longer recording when the deadline has passed.
      if (span?.isRecording())
        span.setAttributes({
          'tracking_client.webhook.handled': handled,
          'tracking_client.webhook.duplicates': duplicates,
        });
      callGuarded(() => onReport?.(report));
    },
  });
  const receive = async (request: Request): Promise<Response> => {
    // HEAD asks whether anybody is there; everything else but POST is no webhook.
    if (request.method !== 'POST') return handler(request);
    // Beside the span of an HTTP instrumentation a second server span would count the request twice.
    const kind = trace.getActiveSpan() === undefined ? SpanKind.SERVER : SpanKind.INTERNAL;
    const attributes = { 'http.request.method': request.method };
    const span = tracer.startSpan('process webhook', { kind, attributes });
    try {
      const response = await context.with(trace.setSpan(context.active(), span), handler, undefined, request);
      const { status } = response;
      const { outcome }: { outcome: string } = await response.clone().json();
      span.setAttributes({ 'http.response.status_code': status, 'tracking_client.webhook.outcome': outcome });
      if (status >= 500) span.setAttribute('error.type', outcome).setStatus({ code: SpanStatusCode.ERROR });
      getMetrics().webhooks.add(1, { 'tracking_client.webhook.outcome': outcome });
      return response;
    } finally {
      span.end();
    }
  };
  return Object.assign(receive, { close: handler.close });
}

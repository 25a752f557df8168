import type { Meter } from '@opentelemetry/api';
// Only a type is imported, because a program that traces its calls must not load the receiver of webhooks.
import type { WebhookMetrics } from '../webhooks/handler.ts';
import { resolveTelemetry, type TelemetryOptions } from './telemetry.ts';

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

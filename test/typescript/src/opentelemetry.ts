import { metrics, trace } from '@opentelemetry/api';
import { TrackingClient } from 'tracking-client';
import {
  observeRateLimits,
  type TelemetryOptions,
  telemetryHooks,
  webhookMetrics,
} from 'tracking-client/opentelemetry';
import { createWebhookHandler, type WebhookHandler } from 'tracking-client/webhooks';

export const options: TelemetryOptions = {
  tracerProvider: trace.getTracerProvider(),
  meterProvider: metrics.getMeterProvider(),
};
const telemetry = telemetryHooks(options);
export const client = new TrackingClient({
  hooks: {
    ...telemetry,
    onPoll: ({ id, lagMs }) => console.log(id, lagMs.toFixed()),
    onPollError: ({ id, error, errorsInARow, isOutage }) => console.log(id, error, errorsInARow, isOutage),
  },
});

const byAccount = new Map([['shop', client]]);
export const stops: (() => void)[] = [
  observeRateLimits(client, options),
  observeRateLimits(() => byAccount.values()),
];

export const handler: WebhookHandler = createWebhookHandler({
  secret: 'secret',
  onEvent: ({ eventId }) => console.log(eventId),
  metrics: webhookMetrics(options),
});

export function misspelt(): void {
  // @ts-expect-error -- `tracer`
  telemetryHooks({ tracer: trace.getTracer('shop') });
}

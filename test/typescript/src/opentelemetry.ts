import { metrics, trace } from '@opentelemetry/api';
import { TrackingClient } from 'tracking-client';
import { type TelemetryOptions, telemetryHooks, tracedWebhookHandler } from 'tracking-client/opentelemetry';
import { TransactionalInbox } from 'tracking-client/postgres';
import { createWebhookHandler, type WebhookHandler } from 'tracking-client/webhooks';

export const options: TelemetryOptions = {
  tracerProvider: trace.getTracerProvider(),
  meterProvider: metrics.getMeterProvider(),
};
const telemetry = telemetryHooks(options);
export const client = new TrackingClient({
  hooks: { ...telemetry, onPoll: ({ id, lagMs }) => console.log(id, lagMs.toFixed()) },
});

export function receiveWith(
  pool: ConstructorParameters<typeof TransactionalInbox>[0]['pool'],
): WebhookHandler {
  const inbox = new TransactionalInbox({ pool });
  const handler = tracedWebhookHandler(
    createWebhookHandler,
    { secret: 'secret', inbox, onEvent: (_event, { transaction }) => transaction.query('SELECT 1') },
    options,
  );
  return handler;
}

export function misspelt(): void {
  // @ts-expect-error -- `tracer`
  telemetryHooks({ tracer: trace.getTracer('shop') });
}

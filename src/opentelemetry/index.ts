/**
 * Spans and metrics of calls, polls and webhooks, through `@opentelemetry/api`.
 *
 * @module tracking-client/opentelemetry
 */

export { telemetryHooks } from './calls.ts';
export type { TelemetryOptions } from './scope.ts';
export { tracedWebhookHandler } from './webhooks.ts';

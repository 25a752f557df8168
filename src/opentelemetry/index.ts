/**
 * Spans and metrics of calls, polls and webhooks, through `@opentelemetry/api`.
 * @module tracking-client/opentelemetry
 */

export { type TelemetryOptions, telemetryHooks, webhookMetrics } from './telemetry.ts';

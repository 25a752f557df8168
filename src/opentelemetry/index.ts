/**
 * Spans and metrics of calls, polls and webhooks, through `@opentelemetry/api`.
 * @module tracking-client/opentelemetry
 */

export { telemetryHooks } from './calls.ts';
export { observeRateLimits } from './rate-limits.ts';
export type { TelemetryOptions } from './telemetry.ts';
export { webhookMetrics } from './webhooks.ts';

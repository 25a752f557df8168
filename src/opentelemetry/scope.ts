import {
  type Meter,
  type MeterProvider,
  metrics,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import * as z from 'zod';
import { checkOptions, hasMethods, type OptionShape, option, switchOption } from '../common/option-checks.ts';
import { VERSION } from '../version.ts';

const NAME = 'tracking-client';

/** Options of `telemetryHooks` and `tracedWebhookHandler`. */
export interface TelemetryOptions {
  /** Makes the spans. Default: the provider that is registered with `@opentelemetry/api`. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Makes the metrics. Default: the provider that is registered with `@opentelemetry/api` at the first call, poll or webhook. */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * Spans of attempts, and the metric `http.client.request.duration`. Set `false` where an instrumentation of `fetch`, as
   * `@opentelemetry/instrumentation-undici`, makes both. Default true.
   */
  readonly attempts?: boolean | undefined;
}

const telemetryOptions = z.strictObject({
  tracerProvider: option<TracerProvider>('a TracerProvider', (value) =>
    hasMethods(value, 'getTracer'),
  ).optional(),
  meterProvider: option<MeterProvider>('a MeterProvider', (value) =>
    hasMethods(value, 'getMeter'),
  ).optional(),
  attempts: switchOption.default(true),
} satisfies OptionShape<TelemetryOptions>);

/** Resolves what makes the spans, and what makes the metrics when they are first needed. */
export function resolveTelemetry<Metrics>(
  options: TelemetryOptions,
  createMetrics: (meter: Meter) => Metrics,
): { readonly tracer: Tracer; readonly hasAttempts: boolean; readonly getMetrics: () => Metrics } {
  const checked = checkOptions(telemetryOptions, options, 'telemetry');
  const { tracerProvider = trace.getTracerProvider(), meterProvider, attempts } = checked;
  let created: Metrics | undefined;
  return {
    tracer: tracerProvider.getTracer(NAME, VERSION),
    hasAttempts: attempts,
    // Created late, because a meter that is older than the registration of its provider never counts anything.
    getMetrics: () => {
      created ??= createMetrics((meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, VERSION));
      return created;
    },
  };
}

import {
  type Meter,
  type MeterProvider,
  metrics,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { z } from 'zod';
import { checkOptions, hasMethods, type OptionShape, option } from '../common/option-checks.ts';
import { VERSION } from '../version.ts';

const NAME = 'tracking-client';

/** Options of `telemetryHooks` and `tracedWebhookHandler`: where spans and metrics go. */
export interface TelemetryOptions {
  /** Makes the spans. Default: the provider that is registered with `@opentelemetry/api`. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Makes the metrics. Default: the provider that is registered with `@opentelemetry/api` at the first call, poll or webhook. */
  readonly meterProvider?: MeterProvider | undefined;
}

const telemetryOptions = z.strictObject({
  tracerProvider: option<TracerProvider>('a TracerProvider', (value) =>
    hasMethods(value, 'getTracer'),
  ).optional(),
  meterProvider: option<MeterProvider>('a MeterProvider', (value) =>
    hasMethods(value, 'getMeter'),
  ).optional(),
} satisfies OptionShape<TelemetryOptions>);

/** What spans are made with, and what makes the metrics, once, when they are first needed. */
export function scopeOf<Metrics>(
  options: TelemetryOptions,
  createMetrics: (meter: Meter) => Metrics,
): { readonly tracer: Tracer; readonly metricsOf: () => Metrics } {
  const { tracerProvider = trace.getTracerProvider(), meterProvider } = checkOptions(
    telemetryOptions,
    options,
    'telemetry',
  );
  let made: Metrics | undefined;
  return {
    tracer: tracerProvider.getTracer(NAME, VERSION),
    // Not before: unlike a tracer, a meter that was made before its provider is registered counts nothing for good.
    metricsOf: () => {
      made ??= createMetrics((meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, VERSION));
      return made;
    },
  };
}

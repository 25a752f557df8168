import { type Meter, type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { hasMethods, type OptionShape, option } from '../common/option-schemas.ts';
import { VERSION } from '../version.ts';

const NAME = 'tracking-client';

/** Options of `telemetryHooks`, `observeRateLimits` and `webhookMetrics`. */
export interface TelemetryOptions {
  /** Creates the spans. Default: the provider that is registered with `@opentelemetry/api`. */
  readonly tracerProvider?: TracerProvider | undefined;
  /**
   * Creates the metrics. Default: the provider that is registered with `@opentelemetry/api` at the first call, poll or webhook, or
   * when `observeRateLimits` is called.
   */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * Creates spans of attempts and the metric `http.client.request.duration`. Set `false` if an instrumentation of `fetch`, such
   * as `@opentelemetry/instrumentation-undici`, creates a span of each request: that span is then a child of the span of the call.
   * Default true.
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
  attempts: z.boolean().default(true),
} satisfies OptionShape<TelemetryOptions>);

export function resolveTelemetry<Metrics>(
  options: TelemetryOptions,
  createMetrics: (meter: Meter) => Metrics,
) {
  const checked = checkOptions(telemetryOptions, options, 'telemetry');
  const { tracerProvider = trace.getTracerProvider(), meterProvider, attempts } = checked;
  let created: Metrics | undefined;
  return {
    tracer: tracerProvider.getTracer(NAME, VERSION),
    hasAttempts: attempts,
    // A meter created before its provider is registered never counts anything, so metrics are created at their first use.
    getMetrics: (): Metrics => {
      created ??= createMetrics((meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, VERSION));
      return created;
    },
  };
}

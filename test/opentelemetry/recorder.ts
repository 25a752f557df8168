import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { type Histogram, MeterProvider } from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** The real SDK of OpenTelemetry, which keeps spans in memory, and collects metrics when a test reads them. */
export function makeRecorder() {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  // It needs no timer, so it also works in virtual time.
  const reader = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const contextManager = new AsyncLocalStorageContextManager();
  const collect = async () => {
    const { resourceMetrics, errors } = await reader.collect();
    if (errors.length > 0) throw new AggregateError(errors, 'Metrics could not be collected');
    return resourceMetrics;
  };
  const collectMetrics = async () => (await collect()).scopeMetrics.flatMap(({ metrics }) => metrics);
  return {
    telemetry: { tracerProvider, meterProvider },
    contextManager,
    tracer: tracerProvider.getTracer('the user'),
    /** Spans in the order of their ends. */
    spans: (): ReadableSpan[] => spans.getFinishedSpans(),
    /** The points of a metric: attributes, and the value of a counter or the count and sum of a histogram. */
    async points(name: string): Promise<readonly Point[]> {
      const found = (await collectMetrics()).filter(({ descriptor }) => descriptor.name === name);
      return found.flatMap(({ dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          attributes,
          value: typeof value === 'number' ? value : read(value),
        })),
      );
    },
    /** The text that Prometheus reads. */
    prometheusText: async (): Promise<string> => new PrometheusSerializer().serialize(await collect()),
    async metricNames(): Promise<string[]> {
      const all = await collectMetrics();
      return all.map(({ descriptor }) => `${descriptor.name} ${descriptor.unit}`).sort();
    },
    close: async () => {
      contextManager.disable();
      await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]);
    },
  };
}

export type Recorder = ReturnType<typeof makeRecorder>;

interface Point {
  readonly attributes: object;
  readonly value: number | { readonly count: number; readonly sum: number | undefined };
}

const read = ({ count, sum }: Pick<Histogram, 'count' | 'sum'>) => ({ count, sum });

import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** The real SDK of OpenTelemetry, which keeps spans and metrics in memory. */
export function makeRecorder() {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 31 - 1 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const contextManager = new AsyncLocalStorageContextManager();
  const collectMetrics = async () => {
    await reader.forceFlush();
    return (
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    );
  };
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

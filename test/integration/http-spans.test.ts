import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { telemetryHooks } from '../../src/opentelemetry/index.ts';
import { makeRecorder, type Recorder } from '../opentelemetry/recorder.ts';
import { respond, startServer } from '../support/scripted-server.ts';

const COURIERS = respond(200, { data: { couriers: [] } });

let recorder: Recorder;
let instrumentation: UndiciInstrumentation;

beforeEach(() => {
  recorder = makeRecorder();
  context.setGlobalContextManager(recorder.contextManager.enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  instrumentation = new UndiciInstrumentation();
  instrumentation.setTracerProvider(recorder.telemetry.tracerProvider);
});

afterEach(async () => {
  instrumentation.disable();
  propagation.disable();
  context.disable();
  trace.disable();
  await recorder.close();
});

/** Lists the path of each span from the root, such as `checkout > couriers.list > GET`. */
function readPaths(): string[] {
  const spans = recorder.spans();
  const readPath = (id: string | undefined): string[] => {
    const span = spans.find((each) => each.spanContext().spanId === id);
    return span === undefined ? [] : [...readPath(span.parentSpanContext?.spanId), span.name];
  };
  return spans.map((span) => readPath(span.spanContext().spanId).join(' > ')).sort();
}

test.each([
  [true, 'couriers.list > GET /public/v1/couriers > GET'],
  [false, 'couriers.list > GET'],
])(
  'attempts: %s, a 503, and a success → the HTTP spans are below %s, and `traceparent` is sent',
  async (attempts, path) => {
    const server = await startServer([respond(503, {}), COURIERS]);
    const client = new TrackingClient({
      baseUrl: server.baseUrl,
      apiKey: 'key',
      logLevel: 'silent',
      hooks: telemetryHooks({ ...recorder.telemetry, attempts }),
    });
    await recorder.tracer.startActiveSpan('checkout', async (span) => {
      await client.couriers.list();
      span.end();
    });
    const paths = readPaths();
    expect(paths.filter((each) => each === `checkout > ${path}`)).toHaveLength(2);
    expect(paths).toHaveLength(attempts ? 6 : 4);
    const httpSpans = recorder.spans().filter(({ name }) => name === 'GET');
    const parents = httpSpans.map((span) => {
      const { traceId, spanId } = span.spanContext();
      return `00-${traceId}-${spanId}-01`;
    });
    expect(server.requests.map(({ headers }) => headers['traceparent'])).toEqual(parents);
  },
);

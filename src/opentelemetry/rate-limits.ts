import type { BatchObservableCallback, Meter } from '@opentelemetry/api';
import type { TrackingClient } from '../client.ts';
import { refuseOption } from '../common/check-options.ts';
import { hasMethods } from '../common/option-schemas.ts';
import { resolveTelemetry, type TelemetryOptions } from './telemetry.ts';

function createRateLimitMetrics(meter: Meter) {
  return {
    meter,
    queueLength: meter.createObservableUpDownCounter('tracking_client.queue.length', {
      unit: '{call}',
      description: 'Calls that wait for the rate limit',
    }),
    pauseRemaining: meter.createObservableGauge('tracking_client.pause.remaining', {
      unit: 's',
      description: 'Time until the pause after a response with status 429 ends',
    }),
  };
}

type RateLimited = Pick<TrackingClient, 'rateLimits'>;

/**
 * Reports for each endpoint how many calls wait for the rate limit and how long its pause lasts, each time that metrics are
 * collected. It reads `client.rateLimits()`, so it works with every limiter. With several clients it reports the sum of the
 * waiting calls and the longest pause. Call it once in a process, after you have registered your provider: a second call would
 * replace the values of the first one.
 *
 * @param clients - the client, or a function that returns the clients of this moment. If clients of one account share a limiter,
 * give only one of them, because each of them counts all waiting calls
 * @param telemetry - see `TelemetryOptions`; only `meterProvider` is used. Default: the provider that is registered now
 * @returns a function that ends the reports and forgets the clients. The SDK still exports the last values
 * @throws ConfigurationError if `clients` or an option is invalid
 * @example
 * const stop = observeRateLimits(client);
 * @example
 * observeRateLimits(() => clientsByAccount.values());
 */
export function observeRateLimits(
  clients: RateLimited | (() => Iterable<RateLimited>),
  telemetry: TelemetryOptions = {},
): () => void {
  if (typeof clients !== 'function' && !hasMethods(clients, 'rateLimits'))
    refuseOption('clients', 'a TrackingClient, or a function that returns several', clients);
  const { getMetrics } = resolveTelemetry(telemetry, createRateLimitMetrics);
  const { meter, queueLength, pauseRemaining } = getMetrics();
  // Kept, so that an endpoint whose clients are gone is reported as 0. Otherwise the SDK would repeat its last value.
  const totals = new Map<string, { queued: number; pauseMs: number }>();
  const observe: BatchObservableCallback = (result) => {
    const now = Date.now();
    for (const endpoint of totals.keys()) totals.set(endpoint, { queued: 0, pauseMs: 0 });
    for (const client of typeof clients === 'function' ? clients() : [clients]) {
      for (const [endpoint, { queued, pausedUntil }] of Object.entries(client.rateLimits())) {
        const total = totals.get(endpoint) ?? { queued: 0, pauseMs: 0 };
        const pauseMs = Math.max(total.pauseMs, (pausedUntil ?? now) - now);
        totals.set(endpoint, { queued: total.queued + queued, pauseMs });
      }
    }
    for (const [endpoint, { queued, pauseMs }] of totals) {
      const attributes = { 'tracking_client.endpoint': endpoint };
      result.observe(queueLength, queued, attributes);
      result.observe(pauseRemaining, pauseMs / 1000, attributes);
    }
  };
  const observables = [queueLength, pauseRemaining];
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

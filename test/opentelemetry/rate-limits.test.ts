import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { observeRateLimits } from '../../src/opentelemetry/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { makeRedisLimiter } from '../redis/limiter/make-redis-limiter.ts';
import { catchRejection, makeClient, type Step } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';
import { useVirtualTime } from '../support/virtual-time.ts';
import { makeRecorder, type Recorder } from './recorder.ts';

const NO_RESPONSE = () => new Promise<never>(() => {});
const REFUSED = { status: 429, headers: { 'retry-after': '7' } };
const IDLE = { waiting: 0, pauseS: 0 };

let recorder: Recorder;
let abort: AbortController;
beforeEach(() => {
  recorder = makeRecorder();
  abort = new AbortController();
});
afterEach(async () => {
  abort.abort();
  await recorder.close();
});

/** A client with a limiter, and its calls to `couriers.list`, which allows one request a second. The calls end with the test. */
function makeLimited(step: Step, options: TrackingClientOptions = { rateLimit: {} }) {
  const { client } = makeClient(step, { retry: false, rateLimit: undefined, ...options });
  const call = async (count: number) => {
    for (let index = 0; index < count; index += 1)
      client.couriers.list({ signal: abort.signal }).catch(() => {});
    await settled();
  };
  return { client, call };
}

/** The values of both metrics for one endpoint. */
async function read(endpoint = 'couriers.list') {
  const readOne = async (name: string) => {
    const points = await recorder.points(`tracking_client.${name}`);
    return points.find(({ attributes }) => Reflect.get(attributes, 'tracking_client.endpoint') === endpoint)
      ?.value;
  };
  return { waiting: await readOne('queue.length'), pauseS: await readOne('pause.remaining') };
}

describe('observeRateLimits', () => {
  test('one call in flight and two that wait → 2 for their endpoint, 0 for the others', async () => {
    useVirtualTime();
    const { client, call } = makeLimited(NO_RESPONSE);
    observeRateLimits(client, recorder.telemetry);
    await call(3);
    expect(await read()).toEqual({ waiting: 2, pauseS: 0 });
    expect(await read('trackers.get')).toEqual(IDLE);
  });

  test('a 429 → the time that is left of its pause, in seconds, until it is over', async () => {
    const clock = useVirtualTime();
    const { client } = makeLimited(REFUSED);
    observeRateLimits(client, recorder.telemetry);
    await catchRejection(client.couriers.list());
    expect(await read()).toEqual({ waiting: 0, pauseS: 7 });
    await clock.advance(2500);
    expect(await read()).toEqual({ waiting: 0, pauseS: 4.5 });
    await clock.advance(5000);
    expect(await read()).toEqual(IDLE);
  });

  test('a RedisLimiter → the waiting calls of this process, and a pause that another process caused', async () => {
    const { limiter, redis } = makeRedisLimiter();
    redis.reply = ({ wanted }) => (wanted > 0 ? { askInMs: 900, pauseLeftMs: 5000 } : { pauseLeftMs: 5000 });
    const { client, call } = makeLimited(NO_RESPONSE, { limiter });
    observeRateLimits(client, recorder.telemetry);
    await call(3);
    expect(await read()).toEqual({ waiting: 3, pauseS: 5 });
  });

  test('a function that returns clients of three accounts → the sum of the calls, the longest pause', async () => {
    useVirtualTime();
    const limiter = new TokenBucketLimiter();
    const one = makeLimited(NO_RESPONSE, { limiter, account: 'one' });
    const two = makeLimited(NO_RESPONSE, { limiter, account: 'two' });
    const paused = makeLimited(REFUSED, { limiter, account: 'paused' });
    await Promise.all([one.call(2), two.call(4), paused.call(1)]);
    const clients = new Set([paused.client, two.client, one.client]);
    observeRateLimits(() => clients, recorder.telemetry);
    expect(await read()).toEqual({ waiting: 4, pauseS: 7 });
    clients.delete(two.client);
    expect(await read()).toEqual({ waiting: 1, pauseS: 7 });
    clients.clear();
    expect(await read()).toEqual(IDLE);
  });

  test('`rateLimit: false` → nothing waits', async () => {
    const { client, call } = makeLimited(NO_RESPONSE, { rateLimit: false });
    observeRateLimits(client, recorder.telemetry);
    await call(3);
    expect(await read()).toEqual(IDLE);
  });

  test('stopped → the client is not read again', async () => {
    const { client } = makeLimited(NO_RESPONSE);
    const rateLimits = vi.spyOn(client, 'rateLimits');
    const stop = observeRateLimits(client, recorder.telemetry);
    await read();
    expect(rateLimits).toHaveBeenCalled();
    rateLimits.mockClear();
    stop();
    await read();
    expect(rateLimits).not.toHaveBeenCalled();
  });

  test('units → calls and seconds', async () => {
    observeRateLimits(makeLimited(NO_RESPONSE).client, recorder.telemetry);
    expect(await recorder.metricNames()).toEqual([
      'tracking_client.pause.remaining s',
      'tracking_client.queue.length {call}',
    ]);
  });

  test.each([
    ['no client', [undefined], '`clients` to be a TrackingClient, or a function'],
    ['a list of clients', [[]], '`clients` to be a TrackingClient, or a function'],
    ['no provider', [() => [], { meterProvider: 5 }], '`telemetry.meterProvider` to be a MeterProvider'],
  ])('%s → ConfigurationError that names the option', (_title, args, message) => {
    const run = () => Reflect.apply(observeRateLimits, undefined, args);
    expect(run).toThrow(ConfigurationError);
    expect(run).toThrow(`Expected ${message}`);
  });
});

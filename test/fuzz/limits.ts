import fc from 'fast-check';
import { TrackingClient } from '../../src/client.ts';
import { type EndpointName, endpoints } from '../../src/endpoints.ts';
import { ApiError } from '../../src/errors.ts';
import { MAX_PAUSE_MS, MAX_RAISE_FACTOR } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { CALLS } from '../support/calls.ts';
import { API_KEY, BASE_URL } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';
import { must, printed } from './must.ts';
import { property } from './property.ts';
import { VirtualTime } from './virtual-time.ts';

const WINDOW_MS = 1_000;
const MAX_UPLINK_MS = 500;
/** When the answers say that they were made. */
const NOW_SECONDS = Date.UTC(2026, 0, 1) / 1_000;

/** Headers, and what they have to be read as. */
interface LimitHeaders {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** How long a 429 with these headers has to be waited out at least, in milliseconds; undefined when they make no sense. */
  readonly pauseMs?: number | undefined;
  /** The highest limit that may be read out of them. */
  readonly limit?: number | undefined;
}

const httpDate = (seconds: number) => new Date(seconds * 1_000).toUTCString();
const DATE: readonly [string, string] = ['date', httpDate(NOW_SECONDS)];

const NONSENSE = [
  '',
  ' ',
  '-1',
  '-0',
  '1e3',
  '1e400',
  '0x10',
  '1,000',
  '10;w=1',
  '1 second',
  'NaN',
  'Infinity',
  'null',
  '[object Object]',
  '٣',
  '.5',
  '5.',
  '--',
  ',',
  ',,5,,',
  '3, -1, x',
  '9'.repeat(16),
  '9'.repeat(400),
  '0.'.padEnd(400, '3'),
  'Fri, 31 Dec 9999 23:59:59 GMT',
  'Thu, 01 Jan 1970 00:00:00 GMT',
  'Sat, 31 Feb 2026 25:61:61 GMT',
  'Sunday, 06-Nov-94 08:49:37 GMT',
  'Sun Nov  6 08:49:37 1994',
  '275761-01-01',
  API_KEY,
];
const NAMES = [
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'date',
] as const;

const seconds = fc.constantFrom(0, 1, 2, 7, 30, 59);
const clean: fc.Arbitrary<LimitHeaders> = fc.oneof(
  fc.constant({ headers: [] }),
  seconds.map((s) => ({ headers: [['retry-after', String(s)]], pauseMs: s * 1_000 }) as const),
  fc
    .constantFrom('0.25', '1.5', '2.125')
    .map((s) => ({ headers: [['retry-after', s]], pauseMs: Number(s) * 1_000 }) as const),
  seconds.map(
    (s) => ({ headers: [DATE, ['retry-after', httpDate(NOW_SECONDS + s)]], pauseMs: s * 1_000 }) as const,
  ),
  seconds.map((s) => ({ headers: [['ratelimit-reset', String(s)]], pauseMs: s * 1_000 }) as const),
  seconds.map(
    (s) => ({ headers: [DATE, ['x-ratelimit-reset', String(NOW_SECONDS + s)]], pauseMs: s * 1_000 }) as const,
  ),
  fc.tuple(fc.constantFrom('ratelimit-', 'x-ratelimit-'), fc.integer({ min: 1, max: 20 }), fc.nat(20)).map(
    ([family, limit, remaining]) =>
      ({
        headers: [
          [`${family}limit`, String(limit)],
          [`${family}remaining`, String(remaining)],
        ],
        limit,
      }) as const,
  ),
);
/** Any of them with values that make none or little sense; those that read as a limit may be taken for one. */
const odd: fc.Arbitrary<LimitHeaders> = fc
  .array(fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...NONSENSE, '0', '1', '3', '999')), {
    minLength: 1,
    maxLength: 4,
  })
  .map((headers) => ({
    headers,
    limit: Math.max(...headers.map(([name, value]) => (name.endsWith('limit') ? plainLimit(value) : 0))),
  }));

function plainLimit(value: string): number {
  return /^\s*\d+\s*$/.test(value) ? Number(value) : 0;
}

const plan = fc.record({
  arrivesAfterMs: fc.constantFrom(0, 0, 0, 40, 400, 1_500),
  uplinkMs: fc.nat(MAX_UPLINK_MS),
  answerAfterMs: fc.oneof(fc.nat(200), fc.nat(3_000)),
  status: fc.constantFrom(200, 200, 200, 429, 503),
  answer: fc.oneof({ weight: 2, arbitrary: clean }, { weight: 1, arbitrary: odd }),
});

const scenario = fc.record({
  endpoint: fc.constantFrom<EndpointName[]>('couriers.list', 'trackers.createBulk', 'trackers.get'),
  plans: fc.array(plan, { minLength: 1, maxLength: 30, size: 'max' }),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer Made> ? Made : never;

/** Lets a call go as far as it comes without time. */
async function turns(): Promise<void> {
  for (let count = 0; count < 3; count += 1) await settled();
}

/** One client against a service in virtual time; the plans are used up in the order in which requests leave. */
async function play(scenario: Scenario): Promise<void> {
  const clock = new VirtualTime();
  clock.install();
  try {
    await playIn(clock, scenario);
  } finally {
    clock.uninstall();
  }
}

async function playIn(clock: VirtualTime, { endpoint, plans }: Scenario): Promise<void> {
  const limiter = new TokenBucketLimiter();
  const world: { readonly at: number; readonly happen: () => void }[] = [];
  const later = (ms: number, happen: () => void) => void world.push({ at: clock.now() + ms, happen });
  const countedAt: number[] = [];
  let [highestLimit, pausedUntil, left] = [endpoints[endpoint].limitPerSecond as number, 0, 0];
  const broken: string[] = [];

  const fetch = () =>
    new Promise<Response>((resolve) => {
      const { uplinkMs, answerAfterMs, status, answer } = plans[left] ?? plans[0] ?? fail();
      left += 1;
      if (clock.now() < pausedUntil)
        broken.push(`a request left ${pausedUntil - clock.now()} ms before the pause was over`);
      later(uplinkMs, () => countedAt.push(clock.now()));
      later(uplinkMs + answerAfterMs, () => {
        highestLimit = Math.max(highestLimit, answer.limit ?? 0);
        // What makes no sense is at least one window.
        if (status === 429) pausedUntil = Math.max(pausedUntil, clock.now() + (answer.pauseMs ?? 0));
        const headers = new Headers({ 'content-type': 'application/json' });
        for (const [name, value] of answer.headers) if (isByteString(value)) headers.append(name, value);
        resolve(new Response(JSON.stringify(CALLS[endpoint].answer), { status, headers }));
      });
    });
  const client = new TrackingClient({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    fetch,
    limiter,
    retry: false,
    logLevel: 'silent',
  });

  let open = 0;
  let arrivesAt = 0;
  for (const { arrivesAfterMs } of plans) {
    arrivesAt += arrivesAfterMs;
    open += 1;
    later(arrivesAt, () => {
      const call = Promise.resolve(CALLS[endpoint].call(client));
      const outcome = call.then(
        () => {},
        (error: unknown) => {
          if (!(error instanceof ApiError)) broken.push(`no typed error: ${printed(error)}`);
          if (printed(error).includes(API_KEY)) broken.push(`shows the key: ${printed(error)}`);
        },
      );
      void outcome.finally(() => {
        open -= 1;
      });
    });
  }
  for (;;) {
    await turns();
    const nextAt = Math.min(...world.map(({ at }) => at), clock.nextTimerAt);
    if (nextAt === Number.POSITIVE_INFINITY) break;
    await clock.moveTo(nextAt);
    for (const event of world.filter(({ at }) => at <= nextAt)) {
      world.splice(world.indexOf(event), 1);
      event.happen();
    }
    await turns();
    checkSnapshot(client, endpoint, clock);
  }
  must(open === 0, () => `${open} calls wait for ever`);
  must(broken.length === 0, () => broken.join('\n'));
  must(clock.timerCount === 0, () => `${clock.timerCount} timers left`);
  // A call waits out at most a minute (`maxRetryAfterMs`), and its turn.
  const longestMs = arrivesAt + plans.length * (60_000 + 2 * (WINDOW_MS + MAX_UPLINK_MS) + 3_000);
  must(clock.now() < longestMs + 5_000, () => `took ${clock.now()} ms`);
  checkWindows(countedAt, Math.min(highestLimit, MAX_RAISE_FACTOR * endpoints[endpoint].limitPerSecond));
}

function fail(): never {
  throw new Error('no plan');
}

function isByteString(value: string): boolean {
  return /^[\t\x20-\xff]*$/.test(value);
}

function checkSnapshot(client: TrackingClient, endpoint: EndpointName, clock: VirtualTime): void {
  const { limit, inUse, queued, pausedUntil } = client.rateLimits()[endpoint];
  const isLimit =
    Number.isSafeInteger(limit) &&
    limit >= 1 &&
    limit <= MAX_RAISE_FACTOR * endpoints[endpoint].limitPerSecond;
  const isPause = pausedUntil === null || pausedUntil <= clock.wallNow() + MAX_PAUSE_MS + 1;
  must(isLimit && isPause && inUse >= 0 && queued >= 0, () => printed(client.rateLimits()[endpoint]));
}

/** However windows lie, none may count more than was ever allowed. */
function checkWindows(countedAt: number[], limit: number): void {
  const sorted = countedAt.toSorted((a, b) => a - b);
  for (const [index, at] of sorted.entries()) {
    const first = sorted[index - limit];
    if (first !== undefined)
      must(at - first >= WINDOW_MS, () => `${limit + 1} requests within ${at - first} ms`);
  }
}

export const limits = property(
  'limits',
  'rate-limit headers of every family, in virtual time: never more than allowed, every pause kept, nobody waits for ever',
  60,
  scenario,
  async () => ({ check: play, stop: async () => {} }),
);

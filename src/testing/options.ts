import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { MAX_TIMER_MS } from '../common/clock.ts';
import { isUrl } from '../common/foreign.ts';
import { describeBrokenRule, expected, kindOf, quoteValue } from '../common/messages.ts';
import {
  countOption,
  delayOption,
  functionOption,
  type OptionShape,
  option,
  rule,
} from '../common/option-schemas.ts';
import { isKey, KEY_RULE } from '../common/secrets.ts';
import { quoteUrl } from '../common/urls.ts';
import { ENDPOINT_NAMES, type EndpointName } from '../endpoints.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import type { FailureKind } from './service/failures.ts';
import type { LimitWindow } from './service/http.ts';
import { PLAY_NAMES, type PlayName } from './shipments/shipment.ts';

/** RFC 2606 reserves `.test`, so a request that escapes the fake reaches no host. */
const DEFAULT_BASE_URL = 'https://tracking.test/public/v1';

/** The subscriptions of the fake's account. */
export interface FakePlans {
  /** The per-shipment plan: trackers and webhooks. Default `true`; `quota` is the maximum number of trackers. */
  readonly perShipment?: boolean | { readonly quota?: number | undefined } | undefined;
  /** The per-call plan: `POST /tracking/search`. Default `false`; `quota` is the number of calls. */
  readonly perCall?: boolean | { readonly quota?: number | undefined } | undefined;
}

/** Options of `createFakeTrackingService`; all are optional. */
export interface FakeTrackingServiceOptions {
  /** Decides all ids that the fake generates. Default 1. */
  readonly seed?: string | number | undefined;
  /** The fake's clock in milliseconds since the epoch. Default `Date.now`, looked up at each call, so that fake timers work. */
  readonly now?: (() => number) | undefined;
  /**
   * Requests per second by endpoint. With `false` the fake counts nothing and sends no limit headers. Default `true`: the limits
   * of the table.
   */
  readonly limits?: boolean | Partial<Record<EndpointName, number | undefined>> | undefined;
  /** Window in which requests are counted: `fixed` starts each second, `sliding` is always the last second. Default `fixed`. */
  readonly limitWindow?: LimitWindow | undefined;
  /** The account's keys, 1 to 20 (docs/service.md 1.8). Default: any key is accepted. */
  readonly apiKeys?: readonly string[] | undefined;
  /** The plans of the account. Default: the per-shipment plan without a quota. */
  readonly plans?: FakePlans | undefined;
  /** Value of `fake.baseUrl`; `fake.listen` serves below its path. Default `https://tracking.test/public/v1`. */
  readonly baseUrl?: string | undefined;
  /** Milliseconds from a tracker's creation to its first events. Default 2000; `trackers.track` does not wait. */
  readonly resultsDelayMs?: number | undefined;
  /**
   * Response for a tracker that has no events yet: its tracking with the milestone `pending` and without events, 404
   * `parcel_not_found`, or an empty list (docs/service.md 2.11). Default `pending`. With `empty`, the results of a number without a
   * tracker are an empty list, too.
   */
  readonly noResults?: 'pending' | 'parcel_not_found' | 'empty' | undefined;
  /** Milliseconds until a response, as a number or by endpoint. Default 0. */
  readonly latencyMs?: number | ((endpoint: EndpointName) => number) | undefined;
  /** False when no webhook URL is registered: nothing is queued, and a resend is refused. Default true. */
  readonly webhooks?: boolean | undefined;
  /**
   * True puts all events that a tracker discovers at the same time into one item of a webhook. Default false: one item for each
   * event, as the service does (docs/service.md 8.2).
   */
  readonly groupEvents?: boolean | undefined;
  /** Scenario that starts by itself for every new tracking number; several scenarios take turns. Default: none. */
  readonly play?: PlayName | readonly PlayName[] | undefined;
  /** Scenarios run this many times faster than real time; at least 1. Default 1; `Infinity` runs them at once. */
  readonly speed?: number | undefined;
  /**
   * How many requests and how many webhooks the fake remembers; only a remembered webhook can be resent. Limit this number in long
   * runs. Default `Infinity`.
   */
  readonly historyLimit?: number | undefined;
  /** Called for each request when its response is ready, or when a planned failure leaves the request without a response. */
  readonly onRequest?: ((request: RecordedRequest) => void) | undefined;
}

/** One request as the fake saw it. */
export interface RecordedRequest {
  /** The endpoint of the table; `undefined` when no endpoint has that path and method. */
  readonly endpoint: EndpointName | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Path with the base, percent-encoded as it was sent. */
  readonly path: string;
  /** Query parameters by name. */
  readonly query: Readonly<Record<string, string>>;
  /** The parsed JSON, or else the text; `undefined` when there was none. */
  readonly body: unknown;
  /** Names in lower case; `authorization` is left out. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch on the fake's clock. */
  readonly receivedAtMs: number;
  /** The response's `x-request-id`. */
  readonly requestId: string;
  /** Status of the response; `null` while there is no response, or when the connection broke. */
  readonly status: number | null;
  /** The kind of the planned failure that happened; `undefined` without a failure or for one that only sets a status. */
  readonly failure: FailureKind | undefined;
  /** The first error of the response; `undefined` when the response has no error. */
  readonly error: ApiErrorItem | undefined;
}

/** Checks the scheme, too: `localhost:3000` is a valid URL with the scheme `localhost`. */
export function isHttpUrl(value: unknown): boolean {
  if (typeof value !== 'string' && !isUrl(value)) return false;
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

export const HTTP_URL = 'a URL that begins with http:// or https://';

/** Objects are refused: all of them would give the same seed. */
export const seedOption = option<string | number>('a string or a number', (value) =>
  ['string', 'number'].includes(typeof value),
);

export const speedOption = option<number>(
  'a number of at least 1',
  (value) => typeof value === 'number' && value >= 1,
  quoteValue,
);

/** Accepts `true`, `false`, or options (which imply `true`); the result is `false` or all options. */
export function switchOption<Shape extends z.ZodRawShape>(shape: Shape) {
  const names = Object.keys(shape).join(', ');
  const options = z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'invalid_type'
        ? describeBrokenRule(issue, `to be true, false, or an object with options (${names})`, kindOf)
        : undefined,
  });
  return z
    .preprocess((value) => (value === true ? {} : value === false ? undefined : value), options.optional())
    .transform((value) => value ?? false);
}

const planOptions = { quota: countOption(0, true).default(Number.POSITIVE_INFINITY) };

const plansOptions = z.strictObject({
  perShipment: switchOption(planOptions).prefault(true),
  perCall: switchOption(planOptions).prefault(false),
} satisfies OptionShape<FakePlans>);

const limitsOptions = Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, countOption(0).optional()]));

const apiKey = option<string>(KEY_RULE, isKey);

const playRule = expected(`to be one of ${PLAY_NAMES.join(', ')}, or an array of these`, (play) =>
  quoteValue([play].flat().find((name) => !PLAY_NAMES.some((known) => known === name))),
);
const playOption = z.enum(PLAY_NAMES, playRule);

const fakeOptions = z.strictObject({
  seed: seedOption.default(1),
  now: functionOption<() => number>().default(() => () => Date.now()),
  limits: switchOption(limitsOptions).prefault(true),
  limitWindow: z.enum(['fixed', 'sliding']).default('fixed'),
  apiKeys: z.array(apiKey, expected('to have 1 to 20 keys')).min(1).max(20).optional(),
  plans: plansOptions.prefault({}),
  baseUrl: option<string>(HTTP_URL, isHttpUrl, quoteUrl).default(DEFAULT_BASE_URL),
  resultsDelayMs: delayOption.default(2000),
  noResults: z.enum(['pending', 'parcel_not_found', 'empty']).default('pending'),
  latencyMs: z
    .union(
      [functionOption<(endpoint: EndpointName) => number>(), delayOption],
      rule(`a function, or a number of milliseconds from 0 to ${MAX_TIMER_MS}`),
    )
    .prefault(0)
    .transform((latency) => (typeof latency === 'function' ? latency : () => latency)),
  webhooks: z.boolean().default(true),
  groupEvents: z.boolean().default(false),
  play: z
    .union([playOption, z.array(playOption)], playRule)
    .prefault([])
    .transform((play) => [play].flat()),
  speed: speedOption.default(1),
  historyLimit: countOption(0, true).default(Number.POSITIVE_INFINITY),
  onRequest: functionOption<(request: RecordedRequest) => void>().optional(),
} satisfies OptionShape<FakeTrackingServiceOptions>);

export type ResolvedOptions = z.output<typeof fakeOptions>;

export const resolveOptions = (options: FakeTrackingServiceOptions) => checkOptions(fakeOptions, options);

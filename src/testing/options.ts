// Specification: service.md 1, 8; public contract, "Requests"
import {
  checkBoolean,
  checkCount,
  checkDelayMs,
  checkFunction,
  checkKnownOptions,
  checkOneOf,
  refuseOption,
} from '../common/option-checks.ts';
import { ENDPOINT_NAMES, type EndpointName } from '../endpoints.ts';
import type { FailureKind } from './service/failures.ts';
import type { LimitWindow } from './service/rate-limits.ts';
import { checkSeed } from './service/seeded.ts';
import { PLAY_NAMES, type PlayName } from './shipments/plays.ts';

const MAX_API_KEYS = 20;
/** Reserved for tests by RFC 2606, so a request that escapes the fake reaches nobody. */
const DEFAULT_BASE_URL = 'https://tracking.test/public/v1';

/** The subscriptions of the fake's account. */
export interface FakePlans {
  /** The per-shipment plan: trackers and webhooks. Default `true`; `quota` is the number of trackers it may create. */
  readonly perShipment?: boolean | { readonly quota?: number; readonly bulkCreateLimit?: number };
  /** The per-call plan: `POST /tracking/search`. Default `false`; `quota` is the number of calls. */
  readonly perCall?: boolean | { readonly quota?: number };
}

/** Options of `createFakeTrackingService`; every one may be left out. */
export interface FakeTrackingServiceOptions {
  /** Decides every id the fake hands out. Default 1. */
  readonly seed?: string | number;
  /** The fake's clock in milliseconds since the epoch. Default `Date.now`, read anew each time, so fake timers rule it. */
  readonly now?: () => number;
  /**
   * Requests per second by endpoint, where they differ from the table; `false` counts nothing and sends no limit headers.
   * Default: those of the table (service.md 8).
   */
  readonly limits?: false | Partial<Record<EndpointName, number>>;
  /** How requests are counted: `fixed` windows that start each second (default), or `sliding` over the last second. */
  readonly limitWindow?: LimitWindow;
  /** The account's keys, 1 to 20. Default: any key is accepted. */
  readonly apiKeys?: readonly string[];
  /** The subscriptions of the account. Default: the per-shipment plan without a quota. */
  readonly plans?: FakePlans;
  /** Base URL that `fake.baseUrl` tells and `fake.listen` takes its path from. Default `https://tracking.test/public/v1`. */
  readonly baseUrl?: string;
  /** Milliseconds from a tracker's creation to its first results (service.md 1). Default 2000; `trackers.track` does not wait. */
  readonly resultsDelayMs?: number;
  /** How "no results yet" is answered: 404 `parcel_not_found` (default) or an empty list. Both exist. */
  readonly noResults?: 'parcel_not_found' | 'empty';
  /**
   * Status of `POST /trackers` and `POST /trackers/track` for a tracker that is reused, 200 or 201. Default as the public contract
   * has it: 201 and 200.
   */
  readonly existingStatus?: 200 | 201;
  /** Milliseconds until an answer, as a number or by endpoint. Default 0. */
  readonly latencyMs?: number | ((endpoint: EndpointName) => number);
  /** False when no webhook URL is registered: nothing is queued, and a resend is refused. Default true. */
  readonly webhooks?: boolean;
  /** Most events in one push. Default `Infinity`: all that were discovered at once; 1 as in the public samples. */
  readonly eventsPerPush?: number;
  /**
   * Play that starts by itself for every new tracking number; several take turns. Default: none, nothing happens
   * unless the test says so.
   */
  readonly play?: PlayName | readonly PlayName[];
  /** How many times faster than real time plays run, at least 1. Default 1; `Infinity` runs them at once. */
  readonly speed?: number;
  /**
   * How many requests and how many webhooks the fake remembers, the latest ones; a resend repeats what is remembered.
   * Default `Infinity`; set it for a fake that runs for days.
   */
  readonly historyLimit?: number;
  /** Told of each request when its answer is ready. */
  readonly onRequest?: (request: RecordedRequest) => void;
}

/** One request as the fake saw it. */
export interface RecordedRequest {
  /** The endpoint of the table; `undefined` when none has that path and method. */
  readonly endpoint: EndpointName | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Path with the base, percent-encoded as it was sent. */
  readonly path: string;
  /** Query parameters by name. */
  readonly query: Readonly<Record<string, string>>;
  /** Parsed when it was JSON, else the text; `undefined` when there was none. */
  readonly body: unknown;
  /** Names in lower case; never the key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch on the fake's clock. */
  readonly receivedAtMs: number;
  /** The response's `x-request-id`. */
  readonly requestId: string;
  /** The response's status; `null` while there is none, or when the connection broke. */
  readonly status: number | null;
  /** How the request was made to fail, unless by a status alone. */
  readonly failure: FailureKind | undefined;
}

/** The options with every default filled in. */
export type ResolvedOptions = ReturnType<typeof resolveOptions>;

const OPTION_NAMES = [
  'seed',
  'now',
  'limits',
  'limitWindow',
  'apiKeys',
  'plans',
  'baseUrl',
  'resultsDelayMs',
  'noResults',
  'existingStatus',
  'latencyMs',
  'webhooks',
  'eventsPerPush',
  'play',
  'speed',
  'historyLimit',
  'onRequest',
] as const satisfies readonly (keyof FakeTrackingServiceOptions)[];

/** Throws `ConfigurationError` unless a speed is at least 1. */
export function checkSpeed(speed: unknown): number {
  return typeof speed === 'number' && speed >= 1
    ? speed
    : refuseOption('speed', 'a number of at least 1', speed);
}

function checkKeys(apiKeys: unknown): void {
  const isKey = (key: unknown) => typeof key === 'string' && /^\S+$/.test(key);
  const isList = Array.isArray(apiKeys) && apiKeys.length >= 1 && apiKeys.length <= MAX_API_KEYS;
  if (!isList || !apiKeys.every(isKey))
    refuseOption('apiKeys', `1 to ${MAX_API_KEYS} keys without spaces`, apiKeys);
}

function checkLimits(limits: Partial<Record<EndpointName, number>>): void {
  checkKnownOptions('limits', limits, ENDPOINT_NAMES);
  for (const [name, limit] of Object.entries(limits)) checkCount(`limits.${name}`, limit, 0);
}

function quota(name: string, value = Number.POSITIVE_INFINITY): number {
  return checkCount(name, value, 0, true);
}

function resolvePlans(plans: FakePlans) {
  checkKnownOptions('plans', plans, ['perShipment', 'perCall']);
  const { perShipment = true, perCall = false } = plans;
  const shipment = typeof perShipment === 'boolean' ? {} : perShipment;
  const call = typeof perCall === 'boolean' ? {} : perCall;
  checkKnownOptions('plans.perShipment', shipment, ['quota', 'bulkCreateLimit']);
  checkKnownOptions('plans.perCall', call, ['quota']);
  return {
    hasPerShipmentPlan: perShipment !== false,
    trackerQuota: quota('plans.perShipment.quota', shipment.quota),
    bulkCreateLimit: quota('plans.perShipment.bulkCreateLimit', shipment.bulkCreateLimit),
    hasPerCallPlan: perCall !== false,
    searchQuota: quota('plans.perCall.quota', call.quota),
  };
}

/** Checks the options and fills the defaults in; throws `ConfigurationError`. */
export function resolveOptions(options: FakeTrackingServiceOptions) {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { latencyMs = 0, limits = {}, apiKeys, baseUrl = DEFAULT_BASE_URL } = options;
  if (apiKeys !== undefined) checkKeys(apiKeys);
  if (limits !== false) checkLimits(limits);
  if (typeof latencyMs !== 'function') checkDelayMs('latencyMs', latencyMs);
  checkFunction('now', options.now);
  checkFunction('onRequest', options.onRequest);
  if (!URL.canParse(baseUrl)) refuseOption('baseUrl', 'an absolute URL', baseUrl);
  const { noResults = 'parcel_not_found', existingStatus } = options;
  if (existingStatus !== undefined && existingStatus !== 200 && existingStatus !== 201)
    refuseOption('existingStatus', '200 or 201', existingStatus);
  return {
    seed: checkSeed(options.seed ?? 1),
    now: options.now ?? (() => Date.now()),
    limits,
    limitWindow: checkOneOf<LimitWindow>('limitWindow', options.limitWindow ?? 'fixed', ['fixed', 'sliding']),
    apiKeys: apiKeys === undefined ? undefined : new Set(apiKeys),
    ...resolvePlans(options.plans ?? {}),
    baseUrl: new URL(baseUrl),
    resultsDelayMs: checkDelayMs('resultsDelayMs', options.resultsDelayMs ?? 2000),
    noResults: checkOneOf('noResults', noResults, ['parcel_not_found', 'empty']),
    existingStatus,
    latencyMs: typeof latencyMs === 'function' ? latencyMs : () => latencyMs,
    webhooks: checkBoolean('webhooks', options.webhooks ?? true),
    eventsPerPush: checkCount('eventsPerPush', options.eventsPerPush ?? Number.POSITIVE_INFINITY, 1, true),
    plays: [options.play ?? []].flat().map((name) => checkOneOf('play', name, PLAY_NAMES)),
    speed: checkSpeed(options.speed ?? 1),
    historyLimit: checkCount('historyLimit', options.historyLimit ?? Number.POSITIVE_INFINITY, 0, true),
    onRequest: options.onRequest ?? (() => {}),
  };
}

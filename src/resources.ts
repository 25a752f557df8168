import * as z from 'zod';
import { BulkCreation, type CreateManyOptions, type TrackerInputs } from './bulk/create-many.ts';
import { checkOptions, rejectOption } from './common/check-options.ts';
import { canonicalJson } from './common/event-keys.ts';
import { CALL_SHAPE } from './config/call-options.ts';
import type { Config } from './config/config.ts';
import {
  type CheckCouriersOptions,
  type CourierCheck,
  CourierChecks,
  type CourierProblem,
  checkCouriers,
} from './couriers/check.ts';
import { CourierList } from './couriers/courier-list.ts';
import { type FindCouriersOptions, findCouriers } from './couriers/find.ts';
import type { ApiPromise } from './http/api-promise.ts';
import { rememberCallSite } from './http/call-errors.ts';
import { callEndpoint, startCall } from './http/execute.ts';
import { prepareRequest } from './http/prepare.ts';
import type { BulkRequestOptions, RequestOptions, TrackerRequestOptions } from './options.ts';
import {
  poll,
  pollMany,
  type TrackerPolls,
  type TrackersToPoll,
  waitUntilStopped,
} from './polling/poll-many.ts';
import { type PollUpdate, pollOnce } from './polling/poll-once.ts';
import type {
  PollManyOptions,
  PollOnceOptions,
  PollOptions,
  ResultsManyOptions,
} from './polling/poll-options.ts';
import { type ResultsManyItem, resultsMany, type TrackerIds } from './polling/results-many.ts';
import type { BulkResult } from './schemas/bulk.ts';
import type { Courier } from './schemas/courier.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_PAGE_SIZE,
  type Tracker,
  type TrackerInput,
  type TrackerListQuery,
  type TrackerPage,
  type TrackerUpdate,
  type TrackingSearchInput,
} from './schemas/tracker.ts';
import type { PerCallTracking, Tracking } from './schemas/tracking.ts';
import type { ResendResult, WebhookHistory } from './schemas/webhook.ts';

function buildInput(id: string, options: TrackerRequestOptions | undefined) {
  return { params: { trackerId: id }, query: { searchBy: options?.searchBy } };
}

/** With `invalidResponse: 'keep'` a tracker may lack its id, so its content identifies it. */
function identify(tracker: Tracker): string {
  return typeof tracker?.trackerId === 'string' ? tracker.trackerId : canonicalJson(tracker);
}

function buildPage(trackers: Tracker[], page: number, limit: number): TrackerPage {
  // A page of the default size counts as full, because a server may cap pages at that size, whatever `limit` is.
  const isFull = trackers.length >= limit || trackers.length === DEFAULT_PAGE_SIZE;
  return { trackers, page, limit, hasMore: isFull };
}

const listQuery = z.strictObject({
  page: z.unknown().optional(),
  limit: z.unknown().optional(),
  sort: z.unknown().optional(),
});
const listAllQuery = listQuery.omit({ page: true });

/** Refuses unknown fields; the schema of the endpoint checks the values of the others. An undefined option counts as left out. */
function checkListQuery(config: Config, method: 'list' | 'listAll', query: object): void {
  const given = Object.entries(Object(query)).filter(
    ([name, value]) => value !== undefined || !Object.hasOwn(CALL_SHAPE, name),
  );
  const misplaced = given.map(([name]) => name).find((name) => Object.hasOwn(CALL_SHAPE, name));
  if (misplaced !== undefined) {
    const advice = `pass it as the second argument, as in \`${method}(query, { ${misplaced} })\``;
    const rule = 'is an option of the call and not of the query';
    rejectOption(misplaced, rule, advice, config.callSite);
  }
  const schema = method === 'list' ? listQuery : listAllQuery;
  const hasUndefined = given.length < Object.keys(Object(query)).length;
  checkOptions(schema, hasUndefined ? Object.fromEntries(given) : query, 'query', config);
}

async function* readPages(
  config: Config,
  query: Omit<TrackerListQuery, 'page'>,
  options: RequestOptions | undefined,
): AsyncGenerator<Tracker, void, undefined> {
  checkListQuery(config, 'listAll', query);
  const limit = query.limit ?? MAX_PAGE_SIZE;
  const sort = query.sort ?? 1;
  let lastPage: ReadonlySet<string> = new Set();
  for (let page = 1; ; page += 1) {
    const trackers = await callEndpoint(config, 'trackers.list', { query: { page, limit, sort } }, options);
    const ids = trackers.map(identify);
    // True if the page is empty, or if it repeats the last page because the service ignores `page`.
    if (ids.every((id) => lastPage.has(id))) return;
    yield* trackers;
    lastPage = new Set(ids);
  }
}

/** Methods for trackers. Every method also throws the errors of every call; see `TrackingClient`. */
export class TrackersResource {
  readonly #config: Config;

  /** @internal */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * Creates a tracker. If a tracker with the same payload exists, returns that one and uses up no quota (docs/service.md 4.2).
   *
   * @param input - the tracking number; optionally the courier, the destination and your own references
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the tracker; store its `trackerId`
   * @throws RequestValidationError before anything is sent; ConflictError; ShippingDateOutdatedError; QuotaExceededError
   * @example
   * const tracker = await client.trackers.create({ trackingNumber: 'LA680658838NL', courierCode: 'fr-post' });
   */
  create(input: TrackerInput, options?: RequestOptions): ApiPromise<Tracker> {
    return callEndpoint(this.#config, 'trackers.create', { body: input }, options);
  }

  /**
   * Lists one page of your trackers (docs/service.md 3.10).
   *
   * @param query - `page` from 1 (default 1), `limit` 1 to 500 (default 100), `sort`
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the page; `hasMore` tells whether there may be another one
   * @throws RequestValidationError before anything is sent
   */
  list(query: TrackerListQuery = {}, options?: RequestOptions): ApiPromise<TrackerPage> {
    return startCall(this.#config, 'trackers.list', options, () => {
      checkListQuery(this.#config, 'list', query);
      const page = query.page ?? 1;
      const limit = query.limit ?? DEFAULT_PAGE_SIZE;
      const input = { query: { page, limit, sort: query.sort } };
      const request = prepareRequest(this.#config, 'trackers.list', input);
      return {
        ...request,
        read: (payload, mode) => {
          const checked = request.read(payload, mode);
          return checked.isUsable ? { ...checked, data: buildPage(checked.data, page, limit) } : checked;
        },
      };
    });
  }

  /**
   * Lists all trackers, page by page, until a page is empty or repeats the one before. A page is requested when you reach it.
   *
   * @param query - `limit` per page (default 500), `sort` (default 1, so that new trackers do not shift the pages)
   * @param options - the options of each call
   * @returns the trackers, one by one
   * @throws like `list`, at the page that fails
   */
  listAll(
    query: Omit<TrackerListQuery, 'page'> = {},
    options?: RequestOptions,
  ): AsyncGenerator<Tracker, void, undefined> {
    return readPages(rememberCallSite(this.#config, this.listAll), query, options);
  }

  /**
   * Creates 1 to 100 trackers in one request, and resolves even if items failed (docs/service.md 7.2). `createMany` takes more.
   *
   * @param items - 1 to 100 creation requests
   * @param options - `retryAmbiguous`, and signal, timeouts, retries, headers and priority of this call
   * @returns the `status`, and the `itemStatus` of each item. If the quota or the bulk limit is reached, the result has the field
   * `error` and no items (7.9)
   * @throws ApiError if the service rejected the whole request for another reason; ConnectionError or TimeoutError, after which the
   * items may exist
   */
  createBulk(items: readonly TrackerInput[], options?: BulkRequestOptions): ApiPromise<BulkResult> {
    return callEndpoint(this.#config, 'trackers.createBulk', { body: items }, options);
  }

  /**
   * Creates any number of trackers and yields one outcome per input, in order. At most `concurrency` requests are under way or have
   * unread outcomes.
   *
   * @param inputs - an iterable or async iterable of creation requests
   * @param options - `chunkSize`, `concurrency`, `retryAmbiguous`, `onProgress`, and the options of each request
   * @returns a stream of the outcomes, which also has `summary()`
   * @throws ConfigurationError at once; the error of `inputs` or the signal's reason, after the outcomes of all inputs that were
   * read from `inputs`
   * @example
   * const run = client.trackers.createMany(rows);
   * for await (const { index, status, tracker, errors } of run) save(index, status, tracker?.trackerId, errors);
   */
  createMany(inputs: TrackerInputs, options: CreateManyOptions = {}): BulkCreation {
    return new BulkCreation(this.#config, inputs, options);
  }

  /**
   * Creates a tracker and fetches its results in the same call, which can take a minute (docs/service.md 1.5).
   *
   * @param input - the tracking number; optionally the courier, the destination and your own references
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the tracker and its results, which have no events if the courier could not be asked at once or knows none
   * @throws ResultsNotReadyError if the service responds that there are no results yet; else like `create`
   */
  track(input: TrackerInput, options?: RequestOptions): ApiPromise<Tracking> {
    return callEndpoint(this.#config, 'trackers.track', { body: input }, options);
  }

  /**
   * Gets one tracker.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @returns the tracker
   * @throws RequestValidationError for an impossible id; NotFoundError
   * @example
   * await client.trackers.get('order-1042', { searchBy: 'clientTrackerId' });
   */
  get(id: string, options?: TrackerRequestOptions): ApiPromise<Tracker> {
    return callEndpoint(this.#config, 'trackers.get', buildInput(id, options), options);
  }

  /**
   * Changes a tracker. Once the service has data, courier codes, countries and the shipping date cannot change
   * (docs/service.md 3.11).
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param patch - at least one field; `isSubscribed: false` archives the tracker
   * @param options - `searchBy`, and the options of this call
   * @returns the tracker as it is now
   * @throws InvalidRequestError (`tracker_not_updatable`); RequestValidationError for a wrong `patch`; else like `get`
   */
  update(id: string, patch: TrackerUpdate, options?: TrackerRequestOptions): ApiPromise<Tracker> {
    const input = { ...buildInput(id, options), body: patch };
    return callEndpoint(this.#config, 'trackers.update', input, options);
  }

  /**
   * Gets the results of every tracker with the given tracking number; numbers are not unique (docs/service.md 4.4).
   *
   * @param trackingNumber - 5 to 50 characters from `A-Z a-z 0-9 - _ / .`
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the results of each tracker; `events` is empty while there is no news yet
   * @throws RequestValidationError before anything is sent; NotFoundError if no tracker has the number; ResultsNotReadyError if the
   * service responds that there are no results yet
   */
  resultsByTrackingNumber(trackingNumber: string, options?: RequestOptions): ApiPromise<Tracking[]> {
    const input = { params: { trackingNumber } };
    return callEndpoint(this.#config, 'trackers.resultsByTrackingNumber', input, options);
  }

  /**
   * Gets the shipment and the full event history of one tracker.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @returns the results; `events` is empty while there is no news yet (docs/service.md 2.11)
   * @throws ResultsNotReadyError if the service responds that there are no results yet; NotFoundError; else like `get`
   */
  results(id: string, options?: TrackerRequestOptions): ApiPromise<Tracking> {
    return callEndpoint(this.#config, 'trackers.results', buildInput(id, options), options);
  }

  /**
   * Gets the results of many trackers, with one request for each. They come as their requests complete, so a tracker whose request
   * hangs does not hold up the others. If the request for one tracker fails, its item has an `error`.
   *
   * @param ids - an iterable or async iterable of ids, each a `trackerId`, or your `clientTrackerId` with `searchBy`; read only as
   * far as needed
   * @param options - `searchBy`, `concurrency`, and the options of each request, which is retried like the requests of `pollOnce`
   * @returns the results or the error of each id
   * @throws ConfigurationError at once; while you read, the error of `ids`, the signal's reason on abort, and an error that every
   * other request would have, too: AuthenticationError, PermissionDeniedError, QuotaExceededError, NoActiveSubscriptionError
   * @example
   * for await (const { id, error, tracking } of client.trackers.resultsMany(trackerIds))
   *   error ? report(id, error) : save(id, tracking?.events ?? []);
   */
  resultsMany(
    ids: TrackerIds,
    options: ResultsManyOptions = {},
  ): AsyncGenerator<ResultsManyItem, void, undefined> {
    return resultsMany(rememberCallSite(this.#config, this.resultsMany), ids, options);
  }

  /**
   * Polls one tracker once, as `poll` does, but does not remember events. Use it if a queue, a cron job or a serverless schedule
   * decides when the next poll comes. One poll sends one request, or up to three if the results lack `isTracked` (docs/service.md 5.3).
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `knownKeys`, and the options of each request. A request that has timed out is not retried. After a 429 the
   * call waits up to an hour; `retry.maxRetryAfterMs` lowers this limit
   * @returns the results (undefined if there are none yet), the new events with their keys, and `stopped`
   * @throws NotFoundError; ResponseValidationError, also if `isTracked` has a wrong type; RequestValidationError for an
   * impossible id; else like `get`
   * @example
   * const { newEvents, keys, stopped } = await client.trackers.pollOnce(trackerId, { knownKeys });
   */
  pollOnce(id: string, options: PollOnceOptions = {}): Promise<PollUpdate> {
    return pollOnce(rememberCallSite(this.#config, this.pollOnce), id, options);
  }

  /**
   * Polls one tracker at background priority until the service stops tracking it. A poll without results yields an update, too.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `intervalMs`, and the conditions that end the polling; see each option
   * @returns the updates
   * @throws ConfigurationError and RequestValidationError at once; while you read, NotFoundError, and TrackingError
   * after `maxConsecutiveErrors` failed polls in a row
   * @example
   * for await (const { newEvents, keys } of client.trackers.poll(trackerId)) await save(newEvents, keys);
   */
  poll(id: string, options: PollOptions = {}): AsyncGenerator<PollUpdate, void, undefined> {
    return poll(rememberCallSite(this.#config, this.poll), id, options);
  }

  /**
   * Polls any number of trackers as one stream; `add` and `delete` change the set. A tracker that fails yields `{ id, error }`.
   *
   * @param ids - an iterable or async iterable of ids, or of `{ id, knownKeys, initialDelayMs }`; read only as fast as they
   * can be polled
   * @param options - `maxPerSecond`, `concurrency`, and the options of `poll` except `knownKeys`
   * @returns the updates of all trackers as they come, until no tracker is left
   * @throws ConfigurationError at once; while you read, the error of `ids`, and the signal's reason on abort
   * @example
   * const polls = client.trackers.pollMany(trackerIds, { intervalMs: 1_200_000 });
   * for await (const { id, error, newEvents } of polls) error ? report(id, error) : save(id, newEvents);
   */
  pollMany(ids: TrackersToPoll, options: PollManyOptions = {}): TrackerPolls {
    return pollMany(rememberCallSite(this.#config, this.pollMany), ids, options);
  }

  /**
   * Polls one tracker until the service stops tracking it or `until` returns true.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - the options of `poll`
   * @returns the last results
   * @throws ResultsNotReadyError if tracking has stopped without an event; TimeoutError after `maxDurationMs`; else like `poll`
   */
  waitUntilStopped(id: string, options: PollOptions = {}): Promise<Tracking> {
    return waitUntilStopped(rememberCallSite(this.#config, this.waitUntilStopped), id, options);
  }

  /**
   * Asks the service to push all webhook events of a tracker again. A request that may have been carried out is not retried.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @returns the number of events that are sent again, if the service reports it
   * @throws InvalidRequestError (`webhook_url_missing`); NotFoundError; else like `get`
   */
  resendWebhookEvents(id: string, options?: TrackerRequestOptions): ApiPromise<ResendResult> {
    return callEndpoint(this.#config, 'trackers.resendWebhookEvents', buildInput(id, options), options);
  }

  /**
   * Downloads the webhooks that were sent for a tracker.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @returns the pushes, newest first, each with the receiver's response (docs/service.md 8.9)
   * @throws NotFoundError; else like `get`
   */
  webhookHistory(id: string, options?: TrackerRequestOptions): ApiPromise<WebhookHistory> {
    return callEndpoint(this.#config, 'trackers.webhookHistory', buildInput(id, options), options);
  }
}

/** The method of the per-call plan, a paid look-up that creates no tracker (docs/service.md 1.2). */
export class TrackingResource {
  readonly #config: Config;

  /** @internal */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * Looks a tracking number up once, which can take a minute (docs/service.md 6.4). Every call is paid for (1.2), so a request is
   * retried only after a 429 or if it was never sent.
   *
   * @param input - the tracking number and hints about courier and destination
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the shipments found; numbers are not unique
   * @throws RequestValidationError before anything is sent; NoActiveSubscriptionError without a per-call subscription
   */
  search(input: TrackingSearchInput, options?: RequestOptions): ApiPromise<PerCallTracking[]> {
    return callEndpoint(this.#config, 'tracking.search', { body: input }, options);
  }
}

/** The couriers that the service supports. */
export class CouriersResource {
  readonly #config: Config;
  readonly #list = new CourierList();

  /** @internal */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * Lists the couriers and their codes.
   *
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns all couriers
   * @throws ApiError
   */
  list(options?: RequestOptions): ApiPromise<Courier[]> {
    return callEndpoint(this.#config, 'couriers.list', {}, options);
  }

  /**
   * Finds couriers by their code, name or country code. The first call reads the list of couriers, and all calls of this client use
   * the same list for a day (docs/service.md 2.15).
   *
   * @param text - what to look for; case and accents are ignored, and an empty text finds all couriers
   * @param options - `deprecated`, and `signal`, which ends the wait of this call
   * @returns copies of the couriers, best first: those whose code or whose name is the text, those with a word that begins with the
   * text in their name, those with the text in their code or name, and those of the country
   * @throws ConfigurationError; the error of `list` if the list cannot be read, and then the next call reads it again
   * @example
   * const [courier] = await client.couriers.find('La Poste'); // its courierCode is fr-post
   */
  find(text: string, options: FindCouriersOptions = {}): Promise<Courier[]> {
    return findCouriers(rememberCallSite(this.#config, this.find), this.#list, text, options);
  }

  /**
   * Checks whether the couriers of a creation request can find the shipment: the service also accepts a request that lacks a field
   * which its courier needs, and the billed tracker may then stay pending for ever (docs/service.md 3.15). Nothing is refused:
   * `trackers.create` does not call this method. It uses the list of `find`.
   *
   * @param input - the creation request; without a `courierCode` it has no problem, and the list is not read
   * @param options - `signal`, which ends the wait of this call
   * @returns the problems of each courier code, in the order of the codes
   * @throws like `find`
   * @example
   * const problems = await client.couriers.check({ trackingNumber: 'LA680658838NL', courierCode: 'nl-post' });
   * for (const { message } of problems) console.warn(message);
   */
  check(input: TrackerInput, options: CheckCouriersOptions = {}): Promise<CourierProblem[]> {
    return checkCouriers(rememberCallSite(this.#config, this.check), this.#list, input, options);
  }

  /**
   * Checks any number of creation requests as `check` does. Reads each input when you reach it.
   *
   * @param inputs - an iterable or async iterable of creation requests
   * @param options - `signal`, which ends the stream
   * @returns a stream with the problems of each input, in the order of the inputs
   * @throws ConfigurationError at once; while you read, the error of `inputs`, the signal's reason on abort, and else like `find`
   * @example
   * for await (const { index, problems } of client.couriers.checkMany(rows)) if (problems.length > 0) report(index, problems);
   */
  checkMany(
    inputs: TrackerInputs,
    options: CheckCouriersOptions = {},
  ): AsyncGenerator<CourierCheck, void, undefined> {
    return new CourierChecks(rememberCallSite(this.#config, this.checkMany), this.#list, inputs, options);
  }
}

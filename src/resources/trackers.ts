import type { ApiPromise } from '../http/api-promise.ts';
import type { Caller } from '../http/caller.ts';
import type { RequestOptions } from '../options.ts';
import type { BulkResult } from '../schemas/bulk.ts';
import {
  DEFAULT_PAGE,
  DEFAULT_PAGE_SIZE,
  type Tracker,
  type TrackerInput,
  type TrackerListQuery,
  type TrackerPage,
  type TrackerUpdate,
} from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import type { ResendResult, WebhookHistory } from '../schemas/webhook-history.ts';
import { type BulkCreation, createMany, type TrackerInputs } from './create-many.ts';
import type { CreateManyOptions } from './create-many-options.ts';
import { pollTracker, waitUntilStopped } from './poll.ts';
import { pollTrackers, type TrackerPolls } from './poll-many.ts';
import type { PollManyOptions, TrackerIds } from './poll-many-options.ts';
import type { PollOptions, PollUpdate } from './poll-options.ts';
import type { BulkRequestOptions, TrackerRequestOptions } from './request-options.ts';

const LARGEST_PAGE = 500;

/** Trackers: one for each shipment the service follows. */
export class TrackersResource {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Creates a tracker, or returns the one that matches the same payload without using up quota (service.md 2.1, 2.4).
   *
   * @param input - the tracking number and hints
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @throws RequestValidationError before anything is sent; ConflictError (`tracker_conflict`);
   * ShippingDateOutdatedError; QuotaExceededError; ApiError and its other kinds; ConnectionError; TimeoutError
   * @example
   * const tracker = await client.trackers.create({ trackingNumber: 'LA680658838NL', courierCode: 'fr-post' });
   * tracker.trackerId; // store it
   */
  create(input: TrackerInput, options?: RequestOptions): ApiPromise<Tracker> {
    return this.#caller.call('trackers.create', { body: input }, options);
  }

  /**
   * Lists one page of your trackers (service.md 4; query from the public contract).
   *
   * @param query - `page` from 1 (default 1), `limit` 1 to 500 (default 100), `sort` 1 oldest or -1 newest first; and
   * the options of this call
   * @throws RequestValidationError before anything is sent; ApiError and its kinds; ConnectionError; TimeoutError
   */
  list(query: TrackerListQuery & RequestOptions = {}): ApiPromise<TrackerPage> {
    const { page = DEFAULT_PAGE, limit = DEFAULT_PAGE_SIZE, sort, ...options } = query;
    return this.#caller
      .call('trackers.list', { query: { page, limit, sort } }, options)
      .map((trackers) => ({ trackers, page, limit, hasMore: trackers.length >= limit }));
  }

  /**
   * Walks through all trackers, page by page, reading the next page only when you get there.
   *
   * @param query - `limit` trackers a page (1 to 500, default 500), `sort` (default 1, oldest first, so that trackers
   * created meanwhile do not shift the pages); and the options of each call
   * @throws what `list` throws, at the page that fails
   * @example
   * for await (const tracker of client.trackers.listAll()) console.log(tracker.trackerId);
   */
  async *listAll(
    query: Omit<TrackerListQuery, 'page'> & RequestOptions = {},
  ): AsyncGenerator<Tracker, void, undefined> {
    for (let page = 1; ; page += 1) {
      const { trackers, limit } = await this.list({ limit: LARGEST_PAGE, sort: 1, ...query, page });
      yield* trackers;
      // A service that gives smaller pages than it was asked for still gives the usual size while there is more.
      if (trackers.length < Math.min(limit, DEFAULT_PAGE_SIZE)) return;
    }
  }

  /**
   * Creates 1 to 100 trackers in one request (service.md 4, 8). Also resolves when some or all items failed: read
   * `status` and each item's `itemStatus`. For any number of inputs use `createMany`.
   *
   * @param items - 1 to 100 creation requests
   * @param options - `retryAmbiguous`, and signal, timeouts, retries, headers and priority of this call
   * @throws RequestValidationError before anything is sent; ApiError and its kinds when the request as a whole failed
   * with 401, 429 or 5xx; ConnectionError and TimeoutError, after which the items may or may not exist
   */
  createBulk(items: readonly TrackerInput[], options?: BulkRequestOptions): ApiPromise<BulkResult> {
    return this.#caller.call('trackers.createBulk', { body: items }, options);
  }

  /**
   * Creates any number of trackers, 100 a request (service.md 4, 8), and yields one outcome for each input, in order.
   * Inputs are read only as fast as chunks are sent, and nothing is sent while you do not read.
   *
   * @param inputs - creation requests; an array, a generator, a stream of rows
   * @param options - `chunkSize`, `concurrency`, `retryAmbiguous`, `onProgress`, and the options of each request
   * @returns the outcomes; also has `summary()`
   * @throws ConfigurationError at once; after the outcomes of all it read, what `inputs` throws or the signal's reason
   * @example
   * const run = client.trackers.createMany(rows);
   * for await (const { index, status, tracker, errors } of run) save(index, status, tracker?.trackerId, errors);
   * run.summary(); // { total: 5000, created: 4990, existing: 7, error: 1, invalid: 2, unknown: 0 }
   */
  createMany(inputs: TrackerInputs, options: CreateManyOptions = {}): BulkCreation {
    return createMany(this.#caller, inputs, options);
  }

  /**
   * Creates a tracker and fetches its results in the same call, which can take a minute (service.md 1, 4).
   *
   * @param input - the tracking number and hints
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @throws RequestValidationError before anything is sent; ResultsNotReadyError when the courier can't be asked
   * synchronously; ConflictError when the courier codes overlap another tracker's (service.md 2.4);
   * ApiError and its other kinds; ConnectionError; TimeoutError
   */
  track(input: TrackerInput, options?: RequestOptions): ApiPromise<Tracking> {
    return this.#caller.call('trackers.track', { body: input }, options);
  }

  /**
   * Gets one tracker (service.md 4).
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @throws RequestValidationError for an id that can't be one; NotFoundError; ApiError and its other kinds
   * @example
   * await client.trackers.get('order-1042', { searchBy: 'clientTrackerId' });
   */
  get(id: string, options?: TrackerRequestOptions): ApiPromise<Tracker> {
    return this.#caller.call('trackers.get', addressOf(id, options), options);
  }

  /**
   * Changes a tracker (public contract); most fields can't change any more once data was gathered.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param patch - at least one field; `isSubscribed: false` archives the tracker
   * @param options - `searchBy`, and the options of this call
   * @throws RequestValidationError before anything is sent; NotFoundError; InvalidRequestError
   * (`tracker_not_updatable`); ApiError and its other kinds
   */
  update(id: string, patch: TrackerUpdate, options?: TrackerRequestOptions): ApiPromise<Tracker> {
    return this.#caller.call('trackers.update', { ...addressOf(id, options), body: patch }, options);
  }

  /**
   * Gets the results of every tracker with a tracking number (service.md 4; numbers are not unique, 2.4).
   *
   * @param trackingNumber - 5 to 50 characters from `A-Z a-z 0-9 - _ / .`
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @throws RequestValidationError before anything is sent; ResultsNotReadyError; ApiError and its other kinds
   */
  resultsByTrackingNumber(trackingNumber: string, options?: RequestOptions): ApiPromise<Tracking[]> {
    return this.#caller.call('trackers.resultsByTrackingNumber', { params: { trackingNumber } }, options);
  }

  /**
   * Gets the shipment and the full event history of one tracker (service.md 2.3, 4).
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @throws RequestValidationError for an id that can't be one; ResultsNotReadyError while there are none;
   * NotFoundError; ApiError and its other kinds
   */
  results(id: string, options?: TrackerRequestOptions): ApiPromise<Tracking> {
    return this.#caller.call('trackers.results', addressOf(id, options), options);
  }

  /**
   * Polls one tracker until the service stops tracking it (service.md 1), at background priority. Every poll that got
   * an answer is an update, also without results.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `intervalMs` and when to end; see each option
   * @throws ConfigurationError and RequestValidationError at once; while you read, NotFoundError
   * (`tracker_not_found`), TrackingError after `maxConsecutiveErrors` failed polls, with the last failure as its cause
   * @example
   * for await (const { newEvents } of client.trackers.poll(trackerId, { intervalMs: 600_000 })) {
   *   for (const event of newEvents) console.log(event.occurrenceDatetime, event.status);
   * }
   */
  poll(id: string, options: PollOptions = {}): AsyncGenerator<PollUpdate, void, undefined> {
    return pollTracker(this.#caller, id, options);
  }

  /**
   * Polls any number of trackers as one stream; see `poll`. A tracker that fails yields `{ id, error }`, and the others
   * go on. Its `add` and `delete` change which are polled; it ends when none is left.
   *
   * @param ids - an iterable or async iterable of ids
   * @param options - those of `poll`, `maxPerSecond` and `concurrency`
   * @throws ConfigurationError at once; while you read, what `ids` throws, and the signal's reason on abort
   * @example
   * const polls = client.trackers.pollMany(trackerIds, { intervalMs: 1_200_000 });
   * for await (const { id, error, newEvents } of polls) error ? report(id, error) : save(id, newEvents);
   */
  pollMany(ids: TrackerIds, options: PollManyOptions = {}): TrackerPolls {
    return pollTrackers(this.#caller, ids, options);
  }

  /**
   * Polls one tracker until the service stops tracking it or `until` says so; takes what `poll` takes.
   *
   * @returns the last results
   * @throws TimeoutError when `maxDurationMs` runs out first; else what `poll` throws
   * @example
   * const { shipment } = await client.trackers.waitUntilStopped(trackerId, { maxDurationMs: 86_400_000 });
   */
  waitUntilStopped(id: string, options: PollOptions = {}): Promise<Tracking> {
    return waitUntilStopped(this.#caller, id, options);
  }

  /**
   * Has the webhook events of a tracker pushed again, all of them (service.md 4, 6). Never repeated after a failure
   * that may have carried it out.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @returns how many events were queued, when the service tells
   * @throws NotFoundError; InvalidRequestError (`webhook_url_missing`); ApiError and its other kinds
   */
  resendWebhookEvents(id: string, options?: TrackerRequestOptions): ApiPromise<ResendResult> {
    return this.#caller.call('trackers.resendWebhookEvents', addressOf(id, options), options);
  }

  /**
   * Downloads the webhooks that were sent for a tracker (public contract).
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @param options - `searchBy`, and the options of this call
   * @throws NotFoundError; ApiError and its other kinds
   */
  webhookHistory(id: string, options?: TrackerRequestOptions): ApiPromise<WebhookHistory> {
    return this.#caller.call('trackers.webhookHistory', addressOf(id, options), options);
  }
}

function addressOf(id: string, options: TrackerRequestOptions | undefined) {
  return { params: { trackerId: id }, query: { searchBy: options?.searchBy } };
}

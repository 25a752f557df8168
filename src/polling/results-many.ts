import { onAbort } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import type { Config } from '../config/config.ts';
import { isAccountError, isTrackingError, type TrackingError } from '../errors.ts';
import type { Tracking } from '../schemas/tracking.ts';
import {
  checkTrackerId,
  createPollRequestSettings,
  type PollRequestSettings,
  quietCalls,
  TrackerPoller,
} from './poll-once.ts';
import { type ResultsManyOptions, resultsManyOptions } from './poll-options.ts';

/** The results of the tracker with this `id`, or the `error` of its request. */
export type ResultsManyItem = {
  /** The id as it was given. */
  readonly id: string;
} & (
  | {
      /** The results; undefined if the service responded that there are none yet (docs/service.md 2.11). */
      readonly tracking: Tracking | undefined;
      /** True if the results say that the service has stopped tracking (`isTracked: false`; docs/service.md 5.1). */
      readonly stopped: boolean;
      /** When the service sent the results, as in a `PollUpdate`. */
      readonly readAt: string;
      readonly error?: undefined;
    }
  | {
      readonly tracking?: undefined;
      readonly stopped?: undefined;
      readonly readAt?: undefined;
      readonly error: TrackingError;
    }
);

/** The ids of trackers, from a list or an asynchronous source. */
export type TrackerIds = Iterable<string> | AsyncIterable<string>;

/**
 * The stream of `trackers.resultsMany`. Ids are read and requests start only while somebody reads, and at most `concurrency`
 * requests are in flight or unread.
 */
class ResultsMany extends PullStream<ResultsManyItem> {
  readonly #config: Config;
  readonly #ids: TrackerIds;
  readonly #concurrency: number;
  readonly #requestSettings: PollRequestSettings;
  readonly #unread: ResultsManyItem[] = [];
  #inFlight = 0;
  #isReadingIds = false;
  /** The end of the ids; the requests in flight go on. */
  #idsEnd: { readonly error?: unknown } | undefined;
  /** A failure that every other request would have, too. */
  #failure: { readonly error: unknown } | undefined;
  /** Ends the wait for a change. */
  #wake = () => {};

  constructor(config: Config, ids: TrackerIds, options: ResultsManyOptions) {
    checkIterable('ids', ids);
    const { signal, concurrency, ...settings } = checkOptions(resultsManyOptions, options, undefined, config);
    super(signal);
    this.#config = config;
    this.#ids = ids;
    this.#concurrency = concurrency;
    this.#requestSettings = createPollRequestSettings(config, settings, {
      callConfig: quietCalls(config),
      pollsPerRecord: Number.POSITIVE_INFINITY,
    });
  }

  protected override async *produce(): AsyncGenerator<ResultsManyItem, void, undefined> {
    const source = new SourceReader(this.#ids);
    const unsubscribe = onAbort(this.endSignal, () => this.#wake());
    try {
      for (;;) {
        this.endSignal.throwIfAborted();
        void this.#startRequests(source);
        const item = this.#unread.shift();
        if (item !== undefined) yield item;
        else if (this.#failure !== undefined) throw this.#failure.error;
        else if (this.#idsEnd === undefined || this.#inFlight > 0) await this.#waitForChange();
        else if ('error' in this.#idsEnd) throw this.#idsEnd.error;
        else return;
      }
    } finally {
      unsubscribe();
      source.close();
    }
  }

  #waitForChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #hasRoom(): boolean {
    const isOver = this.#idsEnd !== undefined || this.#failure !== undefined;
    return !isOver && this.#inFlight + this.#unread.length < this.#concurrency;
  }

  /** Reads ids and starts their requests, as long as there is room. */
  async #startRequests(source: SourceReader<string>): Promise<void> {
    if (this.#isReadingIds) return;
    this.#isReadingIds = true;
    try {
      while (this.#hasRoom()) {
        const { done, value } = await source.next(this.endSignal);
        if (done) this.#idsEnd = {};
        else void this.#read(value);
      }
    } catch (error) {
      this.#idsEnd = { error };
    } finally {
      this.#isReadingIds = false;
      this.#wake();
    }
  }

  async #read(id: string): Promise<void> {
    this.#inFlight += 1;
    try {
      checkTrackerId(this.#config, id);
      const poller = new TrackerPoller(id, undefined, this.#requestSettings);
      const { tracking, tracker, readAt } = await poller.readResults(this.endSignal);
      this.#unread.push({ id, tracking, stopped: tracker?.isTracked === false, readAt });
    } catch (error) {
      if (isTrackingError(error) && !isAccountError(error)) this.#unread.push({ id, error });
      else this.#failure ??= { error };
    } finally {
      this.#inFlight -= 1;
      this.#wake();
    }
  }
}

export function resultsMany(
  config: Config,
  ids: TrackerIds,
  options: ResultsManyOptions,
): AsyncGenerator<ResultsManyItem, void, undefined> {
  return new ResultsMany(config, ids, options);
}

import { linkedController } from '../common/abort.ts';
import { ApiError, ConfigurationError, ConnectionError, isAccountError, TrackingError } from '../errors.ts';
import { isOutage } from '../http/retry.ts';
import { formatError } from '../observability/logger.ts';
import type { OutageLog } from './outage-log.ts';
import {
  getWaitUntil,
  isPermanent,
  type PollRequestSettings,
  type PollResult,
  type PollUpdate,
  TrackerPoller,
} from './poll-once.ts';
import { DEFAULT_MAX_CONSECUTIVE_ERRORS, type PollContext } from './poll-options.ts';

/** The settings that all trackers of a stream share. */
export interface StreamRequestSettings extends PollRequestSettings {
  /** Undefined if the caller has not set it. */
  readonly maxConsecutiveErrors: number | undefined;
  readonly outages: OutageLog;
  /** Aborts when the stream ends. */
  readonly endSignal: AbortSignal;
}

/** A tracker of a stream, and the state of its polling. Between two polls it has no promise, timer or listener. */
export class PolledTracker extends TrackerPoller {
  dueAt = 0;
  /** The service has asked not to poll before this time, in the response to a poll that failed. */
  waitsUntil = 0;
  #errorsInARow = 0;
  /** The errors in a row that count towards `maxConsecutiveErrors`. */
  #countedErrors = 0;
  #controller: AbortController | undefined;
  readonly #requestSettings: StreamRequestSettings;

  constructor(id: string, knownKeys: Set<string> | undefined, requestSettings: StreamRequestSettings) {
    super(id, knownKeys, requestSettings);
    this.#requestSettings = requestSettings;
  }

  cancel(): void {
    this.#controller?.abort(new Error('The tracker is no longer polled'));
    this.#requestSettings.outages.forget(this);
  }

  buildContext(update?: PollUpdate): PollContext {
    return {
      id: this.id,
      poll: this.polls,
      tracking: update?.tracking,
      newEvents: update?.newEvents ?? [],
      errorsInARow: this.#errorsInARow,
    };
  }

  /** Returns undefined if the poll failed and another poll may follow; throws the failure that ends the polling. */
  async poll(): Promise<PollResult | undefined> {
    const { controller, unsubscribe } = linkedController(this.#requestSettings.endSignal);
    this.#controller = controller;
    try {
      const result = await this.pollOnce(controller.signal);
      this.#errorsInARow = 0;
      this.#countedErrors = 0;
      this.#requestSettings.outages.noteResponse(this);
      return result;
    } catch (error) {
      controller.signal.throwIfAborted();
      this.#handleFailure(error);
      return undefined;
    } finally {
      unsubscribe();
      this.#controller = undefined;
    }
  }

  #handleFailure(error: unknown): void {
    const { config, outages, maxConsecutiveErrors } = this.#requestSettings;
    this.#errorsInARow += 1;
    const errorsInARow = this.#errorsInARow;
    this.waitsUntil = getWaitUntil(error);
    const isAway = isOutage(error);
    if (!isAway && error instanceof ApiError) outages.noteResponse(this);
    config.hooks.onPollError?.({ id: this.id, error, errorsInARow, isOutage: isAway });
    if (isPermanent(error)) throw error;
    // A key, plan or certificate that has worked once may work again, e.g. after a rotation.
    const hasWorked = this.polls > errorsInARow;
    const isWrongSetting =
      isAccountError(error) ||
      error instanceof ConfigurationError ||
      (error instanceof ConnectionError && error.isPermanent);
    if (!hasWorked && isWrongSetting) throw error;
    const counts = !isAway || !hasWorked || maxConsecutiveErrors !== undefined;
    if (counts) this.#countedErrors += 1;
    const reason = formatError(error);
    if (this.#countedErrors >= (maxConsecutiveErrors ?? DEFAULT_MAX_CONSECUTIVE_ERRORS)) {
      const errors = this.#countedErrors === 1 ? '1 error' : `${this.#countedErrors} errors in a row`;
      const message = `Polling \`${this.id}\` has ended after ${errors} (\`maxConsecutiveErrors\`); the last error: ${reason}`;
      throw new TrackingError(message, { cause: error, callSite: config.callSite });
    }
    if (isAway) outages.noteFailure(this, error);
    const message = 'A poll failed; the tracker will be polled again';
    const fields = { poll: this.polls, errorsInARow, reason };
    this.log(isAway ? 'debug' : 'warn', 'trackers.results', message, fields);
  }
}

/** Trackers sorted by the time of their next poll; those due at the same time keep the order in which they were added. */
export class DueList {
  readonly #trackers: PolledTracker[] = [];

  get first(): PolledTracker | undefined {
    return this.#trackers[0];
  }

  add(tracker: PolledTracker): void {
    this.#trackers.splice(this.#findEnd(tracker.dueAt), 0, tracker);
  }

  /** Returns false for a tracker that is not in the list. */
  remove(tracker: PolledTracker): boolean {
    const index =
      tracker === this.first ? 0 : this.#trackers.indexOf(tracker, this.#findEnd(tracker.dueAt - 1));
    if (index >= 0) this.#trackers.splice(index, 1);
    return index >= 0;
  }

  /**
   * Finds the end of the trackers that are due at `dueAt` or before. Most trackers are added at the end of the list, so look there
   * first.
   */
  #findEnd(dueAt: number): number {
    let low = 0;
    let high = this.#trackers.length;
    if ((this.#trackers.at(-1)?.dueAt ?? dueAt) <= dueAt) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#trackers[middle]?.dueAt ?? dueAt) <= dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

import { formatError, type LogAdapter } from '../observability/logger.ts';

/**
 * Logs the outages of the service that a stream meets: a warning at the first failed poll, and a line at the end, however many
 * trackers are polled. An outage ends when every tracker that it has affected got a response, is no longer polled, or fails while
 * most polls of other trackers succeed.
 */
export class OutageLog {
  readonly #logger: LogAdapter;
  /** The trackers that the outage affects; the value is `#balance` after the last failure of the tracker. */
  readonly #affected = new Map<object, number>();
  /** Trackers that kept failing while others succeeded. Their failures begin no outage. */
  readonly #stillFailing = new Set<object>();
  /** The number of polls that got a response, minus the number of those that did not. */
  #balance = 0;

  constructor(logger: LogAdapter) {
    this.#logger = logger;
  }

  noteFailure(tracker: { readonly id: string }, error: unknown): void {
    const balance = this.#affected.get(tracker);
    const mostSucceed = balance !== undefined && this.#balance > balance;
    this.#balance -= 1;
    if (this.#stillFailing.has(tracker)) return;
    if (mostSucceed) {
      this.#stillFailing.add(tracker);
      this.#endFor(tracker);
      return;
    }
    if (this.#affected.size === 0) {
      const message = 'The service is not available; the next polls try again';
      this.#logger.warn(message, { noticedBy: tracker.id, reason: formatError(error) });
    }
    this.#affected.set(tracker, this.#balance);
  }

  noteResponse(tracker: object): void {
    this.#balance += 1;
    this.#stillFailing.delete(tracker);
    this.#endFor(tracker);
  }

  /** Call it for a tracker that is no longer polled. */
  forget(tracker: object): void {
    this.#affected.delete(tracker);
    this.#stillFailing.delete(tracker);
  }

  #endFor(tracker: object): void {
    if (!this.#affected.delete(tracker) || this.#affected.size > 0) return;
    const stillFailing = this.#stillFailing.size;
    if (stillFailing === 0)
      this.#logger.info('The service is available again; it has responded to all polls that had failed');
    else this.#logger.info('The service is available again, but not for all trackers', { stillFailing });
  }
}

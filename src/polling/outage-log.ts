import { formatError, type LogAdapter } from '../observability/logger.ts';

/**
 * Logs the outages of the service that a stream meets: a warning at the first failed poll, and a line at the end, however many
 * trackers are polled. An outage ends when every tracker that it has affected got a response or is no longer polled.
 */
export class OutageLog {
  readonly #logger: LogAdapter;
  readonly #affected = new Set<object>();

  constructor(logger: LogAdapter) {
    this.#logger = logger;
  }

  noteFailure(tracker: { readonly id: string }, error: unknown): void {
    if (this.#affected.size === 0) {
      const message = 'The service is not available; the polls go on';
      this.#logger.warn(message, { noticedBy: tracker.id, reason: formatError(error) });
    }
    this.#affected.add(tracker);
  }

  noteResponse(tracker: object): void {
    if (this.#affected.delete(tracker) && this.#affected.size === 0)
      this.#logger.info('The service is available again; it has responded to all polls that had failed');
  }

  /** Call it for a tracker that is no longer polled. */
  forget(tracker: object): void {
    this.#affected.delete(tracker);
  }
}

import type { RequestOptions } from '../options.ts';
import type { SearchBy } from '../schemas/identifier.ts';

/** Options of calls that address one tracker. */
export interface TrackerRequestOptions extends RequestOptions {
  /** Whose id it is: the service's `trackerId` (default), or your own `clientTrackerId`. */
  readonly searchBy?: SearchBy | undefined;
}

/** The input of a call that addresses one tracker. */
export function addressOf(id: string, options: TrackerRequestOptions | undefined) {
  return { params: { trackerId: id }, query: { searchBy: options?.searchBy } };
}

/** Options of `trackers.createBulk`. */
export interface BulkRequestOptions extends RequestOptions {
  /**
   * Also repeats a request that may have been carried out: after a reset, a timeout or a 5xx. Items that the first
   * request created then come back as `existing`. Default false.
   */
  readonly retryAmbiguous?: boolean | undefined;
}

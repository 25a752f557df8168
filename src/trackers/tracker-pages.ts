import type { ApiPromise } from '../http/api-promise.ts';
import type { Caller } from '../http/caller.ts';
import type { RequestOptions } from '../options.ts';
import {
  DEFAULT_PAGE,
  DEFAULT_PAGE_SIZE,
  type Tracker,
  type TrackerListQuery,
  type TrackerPage,
} from '../schemas/tracker.ts';

const LARGEST_PAGE = 500;

/** Full enough for another page to follow: a service may give smaller pages than asked for, down to the usual size. */
function mayHaveMore(count: number, limit: number): boolean {
  return count >= Math.min(limit, DEFAULT_PAGE_SIZE);
}

/** What `trackers.list` does; see there. */
export function listTrackers(
  caller: Caller,
  query: TrackerListQuery & RequestOptions,
): ApiPromise<TrackerPage> {
  const { page = DEFAULT_PAGE, limit = DEFAULT_PAGE_SIZE, sort, ...options } = query;
  return caller.call('trackers.list', { query: { page, limit, sort } }, options).map((trackers) => ({
    trackers,
    page,
    limit,
    hasMore: mayHaveMore(trackers.length, limit),
  }));
}

/** What `trackers.listAll` does; see there. */
export async function* listAllTrackers(
  caller: Caller,
  query: Omit<TrackerListQuery, 'page'> & RequestOptions,
): AsyncGenerator<Tracker, void, undefined> {
  let lastIds = new Set<string>();
  for (let page = 1; ; page += 1) {
    const { trackers, hasMore } = await listTrackers(caller, {
      limit: LARGEST_PAGE,
      sort: 1,
      ...query,
      page,
    });
    // Paging is observed, not guaranteed: a service without it gives the same page for ever.
    if (trackers.every(({ trackerId }) => lastIds.has(trackerId))) return;
    yield* trackers;
    if (!hasMore) return;
    lastIds = new Set(trackers.map(({ trackerId }) => trackerId));
  }
}

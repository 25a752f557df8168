import type { SearchBy } from '../../schemas/identifier.ts';
import { ServiceError } from '../service/replies.ts';
import type { Candidates } from './duplicate-matching.ts';
import type { TrackerPayload, TrackerState } from './tracker-state.ts';

/** All trackers of the fake's account, in the order they were created. */
export class TrackerStore {
  readonly #byId = new Map<string, TrackerState>();
  /** Active trackers only: archiving frees the identifier. */
  readonly #idByClientTrackerId = new Map<string, string>();
  readonly #idsByTrackingNumber = new Map<string, string[]>();

  get size(): number {
    return this.#byId.size;
  }

  all(): TrackerState[] {
    return [...this.#byId.values()];
  }

  add(tracker: TrackerState): void {
    this.#byId.set(tracker.trackerId, tracker);
    const ids = this.#idsByTrackingNumber.get(tracker.trackingNumber);
    if (ids === undefined) this.#idsByTrackingNumber.set(tracker.trackingNumber, [tracker.trackerId]);
    else ids.push(tracker.trackerId);
    if (tracker.clientTrackerId !== null)
      this.#idByClientTrackerId.set(tracker.clientTrackerId, tracker.trackerId);
  }

  /** Finds a tracker by one of its ids; the client's own one addresses active trackers only. */
  find(id: string, searchBy: SearchBy = 'trackerId'): TrackerState | undefined {
    const trackerId = searchBy === 'trackerId' ? id : this.#idByClientTrackerId.get(id);
    return trackerId === undefined ? undefined : this.#byId.get(trackerId);
  }

  /**
   * Like `find`.
   *
   * @throws ServiceError `tracker_not_found` (404)
   */
  get(id: string, searchBy?: SearchBy): TrackerState {
    const tracker = this.find(id, searchBy);
    if (tracker === undefined)
      throw new ServiceError(404, { code: 'tracker_not_found', message: 'There is no such tracker.' });
    return tracker;
  }

  withTrackingNumber(trackingNumber: string): TrackerState[] {
    const ids = this.#idsByTrackingNumber.get(trackingNumber) ?? [];
    return ids.flatMap((id) => this.#byId.get(id) ?? []);
  }

  /** The active trackers that a creation request may mean (service.md 2.4, rule 1). */
  candidates(payload: TrackerPayload): Candidates {
    return {
      byClientTrackerId:
        payload.clientTrackerId === null ? undefined : this.find(payload.clientTrackerId, 'clientTrackerId'),
      byTrackingNumber: this.withTrackingNumber(payload.trackingNumber).filter(
        (tracker) => tracker.isSubscribed,
      ),
    };
  }

  /**
   * Changes a tracker and returns its new state.
   *
   * @throws ServiceError `tracker_conflict` (400) when it becomes active and its `clientTrackerId` was taken meanwhile
   */
  change(trackerId: string, changes: Partial<TrackerState>): TrackerState {
    const current = this.get(trackerId);
    const changed = { ...current, ...changes };
    if (changed.isSubscribed !== current.isSubscribed) this.#moveClientTrackerId(changed);
    this.#byId.set(trackerId, changed);
    return changed;
  }

  #moveClientTrackerId({ clientTrackerId, trackerId, isSubscribed }: TrackerState): void {
    if (clientTrackerId === null) return;
    if (!isSubscribed) {
      this.#idByClientTrackerId.delete(clientTrackerId);
      return;
    }
    if (this.#idByClientTrackerId.has(clientTrackerId))
      throw new ServiceError(400, {
        code: 'tracker_conflict',
        message: '`clientTrackerId` belongs to another active tracker now.',
      });
    this.#idByClientTrackerId.set(clientTrackerId, trackerId);
  }
}

import { endpoints } from '../../endpoints.ts';
import { canAnswerAtOnce } from '../service/couriers.ts';
import { ServiceError } from '../service/replies.ts';
import { parseJson, validated, validatedTrackerInput } from '../service/validate.ts';
import { trackingView } from '../service/views.ts';
import type { TrackerState } from '../trackers/tracker-state.ts';
import type { World } from '../world.ts';
import { type Handler, success } from './handler.ts';
import { addressedTracker } from './trackers.ts';

function view(tracker: TrackerState, world: World) {
  return trackingView(tracker, world.shipment(tracker.trackingNumber), world.visibleEvents(tracker));
}

/** True when there is something to tell: events, or the news that the service has given up. */
function hasResults(tracker: TrackerState, world: World): boolean {
  const isOver = tracker.isFetched && world.shipment(tracker.trackingNumber).isStopped;
  return isOver || !tracker.isSubscribed || world.visibleEvents(tracker).length > 0;
}

/** `GET /trackers/{trackerId}/results`: the full history, or that there is none yet (service.md 1, 2.3). */
export const results: Handler = (call, world) => {
  const tracker = addressedTracker(call, world);
  if (hasResults(tracker, world)) return success(200, { trackings: [view(tracker, world)] });
  if (world.options.noResults === 'empty') return success(200, { trackings: [] });
  throw new ServiceError(404, {
    code: 'parcel_not_found',
    message: 'There are no data on this shipment yet.',
  });
};

/** `GET /trackers/search/{trackingNumber}/results`: every tracker of the number that has results (public contract). */
export const resultsByTrackingNumber: Handler = ({ params }, world) => {
  const { trackingNumber } = validated(endpoints['trackers.resultsByTrackingNumber'].request.params, params);
  const trackers = world.trackers.withTrackingNumber(trackingNumber.toUpperCase());
  const ready = trackers.filter((tracker) => hasResults(tracker, world));
  return success(200, { trackings: ready.map((tracker) => view(tracker, world)) });
};

/** `POST /trackers/track`: asks the couriers at once, where they can be asked so (service.md 1, 2.4). */
export const track: Handler = ({ bodyText }, world) => {
  const nowMs = world.now();
  const input = validatedTrackerInput(parseJson(bodyText), nowMs);
  const { tracker, isNew } = world.createTracker(input, 'trackers.track');
  const { courierCodes } = world.shipment(tracker.trackingNumber);
  const asked = tracker.courierCodes.length > 0 ? tracker.courierCodes : courierCodes;
  if (canAnswerAtOnce(world.couriers, asked)) world.fetchResults(tracker.trackerId, nowMs);
  const current = world.trackers.get(tracker.trackerId);
  return success(isNew ? 201 : 200, { trackings: [view(current, world)] });
};

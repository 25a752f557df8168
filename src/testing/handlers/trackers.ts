import { endpoints } from '../../endpoints.ts';
import type { TrackerUpdate } from '../../schemas/tracker.ts';
import { toAlpha2 } from '../service/countries.ts';
import { ServiceError } from '../service/replies.ts';
import { dayOf, parseJson, validated, validatedTrackerInput, validatedUpdate } from '../service/validate.ts';
import { trackerView } from '../service/views.ts';
import { courierList, type TrackerState } from '../trackers/tracker-state.ts';
import type { World } from '../world.ts';
import { type Call, type Handler, success } from './handler.ts';

/** The tracker that a path addresses (service.md 2.4, rule 5). */
export function addressedTracker({ params, query }: Call, world: World): TrackerState {
  const { searchBy } = validated(endpoints['trackers.get'].request.query, query);
  return world.trackers.get(params['trackerId'] ?? '', searchBy);
}

function view(tracker: TrackerState, world: World) {
  return trackerView(tracker, world.shipment(tracker.trackingNumber));
}

/** `POST /trackers`: 201 for a new tracker, 200 for one that is reused (service.md 2.1, 2.4). */
export const createTracker: Handler = ({ bodyText }, world) => {
  const input = validatedTrackerInput(parseJson(bodyText), world.now());
  const { tracker, isNew } = world.createTracker(input, 'trackers.create');
  return success(isNew ? 201 : 200, { tracker: view(tracker, world) });
};

/** `GET /trackers/{trackerId}` (service.md 4). */
export const getTracker: Handler = (call, world) =>
  success(200, { tracker: view(addressedTracker(call, world), world) });

/** Text that is a whole number becomes one; anything else stays, for the schema to refuse. */
function toNumber(text: string | undefined): unknown {
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** `GET /trackers`: oldest first unless `sort` is -1; `page` and `limit` are required (public contract). */
export const listTrackers: Handler = ({ query }, world) => {
  for (const field of ['page', 'limit']) {
    if (query[field] === undefined)
      throw new ServiceError(400, { code: 'missing_mandatory_field', message: `\`${field}\` is missing.` });
  }
  const numbers = Object.fromEntries(Object.entries(query).map(([field, text]) => [field, toNumber(text)]));
  const { page, limit, sort } = validated(endpoints['trackers.list'].request.query, numbers);
  const oldestFirst = world.trackers.all();
  const sorted = sort === -1 ? oldestFirst.reverse() : oldestFirst;
  const trackers = sorted.slice((page - 1) * limit, page * limit);
  return success(200, { trackers: trackers.map((tracker) => view(tracker, world)) });
};

/** The changes of a patch in the form they are kept. */
function toChanges(patch: TrackerUpdate): Partial<TrackerState> {
  const { isSubscribed, courierCode, originCountryCode, destinationCountryCode, destinationPostCode } = patch;
  return {
    ...(isSubscribed !== undefined && { isSubscribed }),
    ...(courierCode !== undefined && { courierCodes: courierList(courierCode) }),
    ...(originCountryCode !== undefined && { originCountryCode: toAlpha2(originCountryCode) ?? null }),
    ...(destinationCountryCode !== undefined && {
      destinationCountryCode: toAlpha2(destinationCountryCode) ?? null,
    }),
    ...(destinationPostCode !== undefined && { destinationPostCode }),
    ...(patch.shippingDate !== undefined && { shippingDay: dayOf(patch.shippingDate) }),
  };
}

/** `PATCH /trackers/{trackerId}`: only `isSubscribed` may change once data was gathered (public contract). */
export const updateTracker: Handler = (call, world) => {
  const tracker = addressedTracker(call, world);
  const changes = toChanges(validatedUpdate(parseJson(call.bodyText), world.now()));
  if (Object.keys(changes).length === 0)
    throw new ServiceError(400, {
      code: 'validation_error',
      message: 'No field can be updated by that name.',
    });
  const isOnlySubscription = Object.keys(changes).every((field) => field === 'isSubscribed');
  if (!isOnlySubscription && world.visibleEvents(tracker).length > 0)
    throw new ServiceError(400, {
      code: 'tracker_not_updatable',
      message: 'Data was gathered for this tracker; only `isSubscribed` can change now.',
    });
  return success(200, { tracker: view(world.updateTracker(tracker, changes), world) });
};

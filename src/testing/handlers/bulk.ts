import { kindOf } from '../../common/validation.ts';
import type { BulkItem } from '../../schemas/bulk.ts';
import { MAX_BULK_ITEMS } from '../../schemas/bulk.ts';
import { ServiceError } from '../service/replies.ts';
import { parseJson, validatedTrackerInput } from '../service/validate.ts';
import { trackerView } from '../service/views.ts';
import type { World } from '../world.ts';
import type { Handler } from './handler.ts';

function itemsOf(body: unknown): readonly unknown[] {
  const isInRange = Array.isArray(body) && body.length >= 1 && body.length <= MAX_BULK_ITEMS;
  if (isInRange) return body;
  const message = `The body must be an array of 1 to ${MAX_BULK_ITEMS} items, got ${kindOf(body)}.`;
  throw new ServiceError(400, { code: 'validation_error', message });
}

/** Refuses a request that creates more trackers than the plan has left, as a whole (public contract). */
function checkQuota(world: World, inputs: readonly unknown[]): void {
  const { trackerQuota, bulkCreateLimit } = world.options;
  if (trackerQuota === Number.POSITIVE_INFINITY && bulkCreateLimit === Number.POSITIVE_INFINITY) return;
  const total = world.countNew(inputs);
  if (world.bulkCreated + total > bulkCreateLimit)
    throw new ServiceError(403, {
      code: 'bulk_create_limit_exceeded',
      message: 'The plan creates fewer trackers in bulk.',
    });
  if (world.trackers.size + total > trackerQuota)
    throw new ServiceError(403, {
      code: 'quota_limit_reached',
      message: 'The items are more than what is left of the quota.',
    });
}

function createItem(inputData: unknown, world: World): BulkItem {
  try {
    const input = validatedTrackerInput(inputData, world.now());
    const { tracker, isNew } = world.createTracker(input, 'trackers.createBulk');
    const itemStatus = isNew ? 'created' : 'existing';
    const view = trackerView(tracker, world.shipment(tracker.trackingNumber));
    return { itemStatus, inputData, tracker: view, errors: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { itemStatus: 'error', inputData, tracker: null, errors: [...error.errors] };
  }
}

/** `POST /trackers/bulk`: 201, 207 or 400 by what became of the items (service.md 4, public contract). */
export const createBulk: Handler = ({ bodyText }, world) => {
  const inputs = itemsOf(parseJson(bodyText));
  checkQuota(world, inputs);
  const data = inputs.map((input) => createItem(input, world));
  const count = (status: string) => data.filter((item) => item.itemStatus === status).length;
  const summary = {
    totalInputs: data.length,
    totalCreated: count('created'),
    totalExisting: count('existing'),
    totalErrors: count('error'),
  };
  world.bulkCreated += summary.totalCreated;
  if (summary.totalErrors === 0)
    return { status: 201, body: { status: 'success', summary, data, error: null } };
  if (summary.totalErrors < data.length)
    return { status: 207, body: { status: 'partial', summary, data, error: null } };
  const error = { code: 'processing_error', message: 'No item could be processed.' };
  return { status: 400, body: { status: 'error', summary, data, error } };
};

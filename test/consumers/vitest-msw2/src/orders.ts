import { isTrackingError, NotFoundError, QuotaExceededError, ResultsNotReadyError } from 'tracking-client';
import { tracking } from './tracking.ts';

export interface Order {
  readonly id: string;
  readonly trackingNumber: string;
  readonly country: string;
}

/** Starts to track an order; a second call finds the same tracker. */
export async function ship({ id, trackingNumber, country }: Order): Promise<string> {
  const tracker = await tracking.trackers.create({
    trackingNumber,
    clientTrackerId: id,
    destinationCountryCode: country,
  });
  return tracker.trackerId;
}

/** The status text on the page of an order. */
export async function statusText(orderId: string): Promise<string> {
  try {
    const { shipment, events } = await tracking.trackers.results(orderId, { searchBy: 'clientTrackerId' });
    return `${shipment?.statusMilestone ?? 'pending'} after ${events.length} events`;
  } catch (error) {
    if (error instanceof ResultsNotReadyError) return 'waiting for the courier';
    if (error instanceof NotFoundError) return 'not shipped';
    throw error;
  }
}

/** The advice that the clerk sees when shipping failed. */
export function advice(error: unknown): string {
  if (error instanceof QuotaExceededError) return 'Buy more trackers.';
  if (isTrackingError(error, 'tracker_conflict')) return 'The order number is taken.';
  return 'Try again later.';
}

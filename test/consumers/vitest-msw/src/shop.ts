import { NotFoundError, ResultsNotReadyError, TrackingClient } from 'tracking-client';

/** The client as the shop is deployed with it; nothing here knows of tests. */
const { trackers } = new TrackingClient({
  baseUrl: new URL('https://api.tracking.example/public/v1/'),
  apiKey: () => process.env['TRACKING_API_KEY'] ?? 'key-of-the-shop',
});

export interface Order {
  readonly id: string;
  readonly trackingNumber: string;
  readonly country: string;
}

/** Starts to track an order; a second call finds the same tracker. */
export async function ship({ id, trackingNumber, country }: Order): Promise<string> {
  const input = { trackingNumber, clientTrackerId: id, destinationCountryCode: country };
  return (await trackers.create(input)).trackerId;
}

const WAITING = 'waiting for the courier';

/** The status text on the page of an order. */
export async function statusText(orderId: string): Promise<string> {
  try {
    const { shipment, events } = await trackers.results(orderId, { searchBy: 'clientTrackerId' });
    if (events.length === 0) return WAITING;
    return `${shipment?.statusMilestone ?? 'unknown'} after ${events.length} events`;
  } catch (error) {
    if (error instanceof ResultsNotReadyError) return WAITING;
    if (error instanceof NotFoundError) return 'not shipped';
    throw error;
  }
}

/** Polls a parcel until its end, and reports new events. */
export async function follow(trackerId: string, tell: (news: string) => void): Promise<void> {
  for await (const { newEvents, stopped } of trackers.poll(trackerId, { intervalMs: 3_600_000 })) {
    for (const event of newEvents) tell(event.statusMilestone ?? 'unknown');
    if (stopped) tell('stopped');
  }
}

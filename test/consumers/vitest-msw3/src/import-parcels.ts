import { type TrackerInput, TrackingClient } from 'tracking-client';

const client = new TrackingClient({
  baseUrl: new URL('https://tracking.warehouse.example/v1/'),
  apiKey: () => 'key-of-the-warehouse',
});

export interface ImportResult {
  readonly trackerIds: ReadonlyMap<string, string>;
  /** The errors, by tracking number. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Creates trackers for all parcels. */
export async function importParcels(parcels: Iterable<TrackerInput>): Promise<ImportResult> {
  const trackerIds = new Map<string, string>();
  const problems = new Map<string, string>();
  for await (const { input, status, tracker, errors } of client.trackers.createMany(parcels)) {
    if (tracker !== undefined) trackerIds.set(input.trackingNumber, tracker.trackerId);
    else problems.set(input.trackingNumber, errors?.[0]?.code ?? status);
  }
  return { trackerIds, problems };
}

/** Polls a parcel until its end, and reports new events. */
export async function follow(trackerId: string, tell: (news: string) => void): Promise<void> {
  for await (const { newEvents, stopped } of client.trackers.poll(trackerId, { intervalMs: 3_600_000 })) {
    for (const event of newEvents) tell(event.statusMilestone ?? 'unknown');
    if (stopped) tell('stopped');
  }
}

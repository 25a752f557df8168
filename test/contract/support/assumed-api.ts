import type { FakeShipment, FakeTrackingService, FakeTrackingServiceOptions } from 'tracking-client/testing';

// Names that the suite assumes before they exist, in one place: it compiles today, and one edit follows a better name.

/** `fake.shipment({ trackerId })`: the shipment of one tracker, where a number speaks to those of all. */
export function shipmentOfTracker(fake: FakeTrackingService, trackerId: string): FakeShipment {
  return Reflect.apply(fake.shipment, fake, [{ trackerId }]);
}

interface AssumedFakeOptions {
  /** Most events in one push; default all that were discovered since the previous one. */
  readonly eventsPerPush?: number;
  /** Status of `POST /trackers` for a tracker that exists; default 201, as the contract has it. */
  readonly existingStatus?: 200 | 201;
}

/** Options of the fake, with those that are assumed. */
export function fakeOptions(
  options: FakeTrackingServiceOptions & AssumedFakeOptions,
): FakeTrackingServiceOptions {
  return options;
}

/** `speed` of the sender's schedule: 1 is the service's own, about six days. */
export const OWN_SCHEDULE: object = { speed: 1 };

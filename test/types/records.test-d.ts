import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type {
  BulkItem,
  BulkResult,
  bulkResultSchema,
  Courier,
  courierSchema,
  eventSchema,
  KnownStatusCategory,
  KnownStatusCode,
  KnownStatusMilestone,
  PerCallTracking,
  perCallTrackingSchema,
  ResendResult,
  Shipment,
  StatusMilestone,
  shipmentSchema,
  Tracker,
  TrackerInput,
  TrackerUpdate,
  Tracking,
  TrackingEvent,
  trackerInputSchema,
  trackerSchema,
  trackingSchema,
  WebhookHistory,
  webhookHistorySchema,
} from '../../src/index.ts';
import type { WebhookTracker } from '../../src/webhooks/index.ts';

type BulkInputData = NonNullable<BulkItem['inputData']>;
type ShipmentDelivery = NonNullable<Shipment['delivery']>;

/** The string keys of a type; `string` when it has an index signature. */
type Keys<T> = Extract<keyof T, string>;
/** The output of a schema's fields, without the name of the record. */
type InferShape<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape, z.core.$strip>>;
/** True for a type without an index signature. */
type IsClosed<T> = string extends Keys<T> ? false : true;

test('records → no index signature', () => {
  expectTypeOf<IsClosed<Tracker>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<Tracking>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<PerCallTracking>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<TrackingEvent>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<Shipment>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<ShipmentDelivery>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<Courier>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<BulkResult>>().toEqualTypeOf<true>();
  expectTypeOf<IsClosed<BulkItem>>().toEqualTypeOf<true>();
});

test('required fields → required; the other fields may be missing or null', () => {
  expectTypeOf<Tracker['trackerId']>().toEqualTypeOf<string>();
  expectTypeOf<Tracker['trackingNumber']>().toEqualTypeOf<string>();
  expectTypeOf<Tracker['isTracked']>().toEqualTypeOf<boolean>();
  expectTypeOf<Tracker['isSubscribed']>().toEqualTypeOf<boolean | null | undefined>();
  expectTypeOf<Tracker['createdAt']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<WebhookTracker>().not.toHaveProperty('isTracked');
  expectTypeOf<WebhookTracker['createdAt']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<Tracker['clientTrackerId']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<Tracker['courierCode']>().toEqualTypeOf<string | string[] | null | undefined>();
  expectTypeOf<Tracking['events']>().toEqualTypeOf<TrackingEvent[]>();
  expectTypeOf<Tracking['tracker']>().toEqualTypeOf<Tracker | null | undefined>();
  expectTypeOf<TrackingEvent['eventId']>().toEqualTypeOf<string>();
  expectTypeOf<TrackingEvent['occurrenceDatetime']>().toEqualTypeOf<string | null | undefined>();
});

test('an add-on field → may be missing, is never null', () => {
  expectTypeOf<ShipmentDelivery['aiPredictiveDeliveryDate']>().extract<null>().toBeNever();
  expectTypeOf<undefined>().toExtend<ShipmentDelivery['aiPredictiveDeliveryDate']>();
  expectTypeOf<NonNullable<ShipmentDelivery['aiPredictiveDeliveryDate']>>().toEqualTypeOf<{
    from?: string | null | undefined;
    to?: string | null | undefined;
  }>();
});

test('an update → takes courier name, URL and the name of the recipient, but no e-mail address', () => {
  expectTypeOf<{
    courierName: string;
    trackingUrl: string;
    recipient: { name: string };
  }>().toExtend<TrackerUpdate>();
  expectTypeOf<{ recipient: { email: string } }>().not.toExtend<TrackerUpdate>();
  expectTypeOf<{ title: string }>().not.toExtend<TrackerUpdate>();
});

test('the recipient of a tracker → perhaps a name; a webhook has none', () => {
  expectTypeOf<Tracker['recipient']>().toEqualTypeOf<
    { name?: string | null | undefined } | null | undefined
  >();
  expectTypeOf<WebhookTracker>().not.toHaveProperty('recipient');
});

test('a per-call result → has no tracker', () => {
  expectTypeOf<PerCallTracking>().not.toHaveProperty('tracker');
});

test('a resend → a number or nothing', () => {
  expectTypeOf<ResendResult>().toEqualTypeOf<{ totalResent?: number | undefined }>();
});

test('a status → known values are completed, unknown values are legal', () => {
  expectTypeOf<'delivered'>().toExtend<StatusMilestone>();
  expectTypeOf<'teleported'>().toExtend<StatusMilestone>();
  expectTypeOf<string>().toExtend<StatusMilestone>();
  expectTypeOf<number>().not.toExtend<StatusMilestone>();
  // A plain `string` would swallow the known values, and editors would not offer them.
  expectTypeOf<StatusMilestone>().not.toEqualTypeOf<string>();
});

test('a misspelt status → compiles, unless the caller asks for a known one', () => {
  const event = {} as Partial<TrackingEvent>; // no field is read
  void (event.statusMilestone === 'deliverd');
  const milestone = event.statusMilestone as KnownStatusMilestone;
  void (milestone === 'delivered');
  // @ts-expect-error -- `deliverd`
  void (milestone === 'deliverd');
  void ('customs' satisfies KnownStatusCategory);
  // @ts-expect-error -- `custom`
  void ('custom' satisfies KnownStatusCategory);
  void ('delivery_delivered' satisfies KnownStatusCode);
  // @ts-expect-error -- `delivered` is a milestone
  void ('delivered' satisfies KnownStatusCode);
});

test('deprecated fields → still typed, as unknown', () => {
  expectTypeOf<TrackingEvent>().toHaveProperty('datetime');
  expectTypeOf<TrackingEvent['utcOffset']>().toEqualTypeOf<unknown>();
  expectTypeOf<TrackingEvent>().toHaveProperty('hasNoTime');
  expectTypeOf<ShipmentDelivery['signedBy']>().toEqualTypeOf<string | null | undefined>();
});

test('nested records → the named types', () => {
  expectTypeOf<NonNullable<Tracking['shipment']>>().toEqualTypeOf<Shipment>();
  expectTypeOf<NonNullable<BulkItem['tracker']>>().toEqualTypeOf<Tracker>();
  expectTypeOf<NonNullable<BulkItem['inputData']>['trackingNumber']>().toEqualTypeOf<
    string | null | undefined
  >();
  expectTypeOf<Required<TrackerInput>>().toExtend<Record<keyof BulkInputData, unknown>>();
  expectTypeOf<Required<BulkInputData>>().toExtend<Record<keyof TrackerInput, unknown>>();
  expectTypeOf<WebhookHistory['webhooks'][number]['responseStatusCode']>().toEqualTypeOf<
    string | null | undefined
  >();
});

test('exported schemas → infer the exported types, by name and field by field', () => {
  expectTypeOf<z.output<typeof eventSchema>>().toEqualTypeOf<TrackingEvent>();
  expectTypeOf<z.output<typeof trackingSchema>>().toEqualTypeOf<Tracking>();
  expectTypeOf<z.output<typeof perCallTrackingSchema>>().toEqualTypeOf<PerCallTracking>();
  expectTypeOf<z.output<typeof shipmentSchema>>().toEqualTypeOf<Shipment>();
  expectTypeOf<z.output<typeof courierSchema>>().toEqualTypeOf<Courier>();
  expectTypeOf<z.output<typeof bulkResultSchema>>().toEqualTypeOf<BulkResult>();
  expectTypeOf<z.output<typeof webhookHistorySchema>>().toEqualTypeOf<WebhookHistory>();
  expectTypeOf<InferShape<typeof trackerSchema.shape>>().toEqualTypeOf<{
    [Key in keyof Tracker]: Tracker[Key];
  }>();
  expectTypeOf<InferShape<typeof trackingSchema.shape>>().toEqualTypeOf<{
    [Key in keyof Tracking]: Tracking[Key];
  }>();
  expectTypeOf<TrackerInput>().toEqualTypeOf<z.input<typeof trackerInputSchema>>();
  expectTypeOf<z.output<typeof trackerSchema>>().toEqualTypeOf<Tracker>();
  expectTypeOf<IsClosed<z.input<typeof trackerInputSchema>>>().toEqualTypeOf<true>();
});

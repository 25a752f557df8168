/** The values of `statusMilestone` known today (docs/service.md 5.4), in the order in which shipments usually reach them. */
export const STATUS_MILESTONES = [
  'pending',
  'info_received',
  'in_transit',
  'out_for_delivery',
  'failed_attempt',
  'available_for_pickup',
  'delivered',
  'exception',
] as const;
/** A milestone known today. Unlike with `StatusMilestone`, `'deliverd' satisfies KnownStatusMilestone` does not compile. */
export type KnownStatusMilestone = (typeof STATUS_MILESTONES)[number];

/** The values of `statusCategory` known today (docs/service.md 5.4). */
export const STATUS_CATEGORIES = [
  'data',
  'transit',
  'destination',
  'customs',
  'delivery',
  'exception',
] as const;
/** A status category known today. Unlike `StatusCategory`, it refuses a misspelt one. */
export type KnownStatusCategory = (typeof STATUS_CATEGORIES)[number];

/** The values of `statusCode` known today (docs/service.md 5.4). */
export const STATUS_CODES = [
  'data_order_created',
  'data_order_cancelled',
  'data_delivery_proposed',
  'data_delivery_decided',
  'transit_handover',
  'transit_origin_country_departure',
  'destination_arrival',
  'customs_received',
  'customs_exception',
  'customs_rejected',
  'customs_cleared',
  'delivery_available_for_pickup',
  'delivery_out_for_delivery',
  'delivery_attempted',
  'delivery_exception',
  'delivery_refused',
  'delivery_delivered',
  'exception_return',
  'exception_lost',
  'exception_discarded',
] as const;
/** A status code known today. Unlike `StatusCode`, it refuses a misspelt one. */
export type KnownStatusCode = (typeof STATUS_CODES)[number];

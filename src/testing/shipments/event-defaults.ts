import type { STATUS_MILESTONES, StatusCategory, StatusCode, TrackingEvent } from '../../schemas/event.ts';

type Milestone = (typeof STATUS_MILESTONES)[number];

interface MilestoneDefaults {
  readonly statusCode: StatusCode | null;
  readonly statusCategory: StatusCategory | null;
  /** What a courier would write. */
  readonly status: string;
}

/** What an event of each milestone says unless the test says otherwise. */
const DEFAULTS: Readonly<Record<Milestone, MilestoneDefaults>> = {
  pending: { statusCode: null, statusCategory: null, status: 'Waiting for the courier' },
  info_received: {
    statusCode: 'data_order_created',
    statusCategory: 'data',
    status: 'Shipping label created',
  },
  in_transit: { statusCode: 'transit_handover', statusCategory: 'transit', status: 'In transit' },
  out_for_delivery: {
    statusCode: 'delivery_out_for_delivery',
    statusCategory: 'delivery',
    status: 'Out for delivery',
  },
  failed_attempt: {
    statusCode: 'delivery_attempted',
    statusCategory: 'delivery',
    status: 'Delivery attempted, nobody at home',
  },
  available_for_pickup: {
    statusCode: 'delivery_available_for_pickup',
    statusCategory: 'delivery',
    status: 'Ready for collection',
  },
  delivered: { statusCode: 'delivery_delivered', statusCategory: 'delivery', status: 'Delivered' },
  exception: { statusCode: 'delivery_exception', statusCategory: 'exception', status: 'Delivery exception' },
};

function isKnown(milestone: string): milestone is Milestone {
  return Object.hasOwn(DEFAULTS, milestone);
}

/** An event without the parts that belong to one shipment. */
export type EventInput = { readonly [Field in keyof TrackingEvent]?: TrackingEvent[Field] };

/** What an event says about its status, filled up from its milestone (default `in_transit`). */
export function statusOf(input: EventInput): EventInput {
  const milestone = input.statusMilestone ?? 'in_transit';
  const defaults = isKnown(milestone) ? DEFAULTS[milestone] : DEFAULTS.in_transit;
  return { ...defaults, statusMilestone: milestone };
}

/** A time as the service writes UTC: whole seconds and a `Z`. */
export function utcDatetime(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

import type { EventInput } from './event-defaults.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How a step's time is written; real couriers mix all of these (service.md 2.3). */
export type TimeStyle = { readonly offsetHours: number } | 'utc' | 'local' | 'date';

/** One thing that happens in a play. */
export interface PlayStep {
  /** Milliseconds since the play's start, at normal speed. */
  readonly afterMs: number;
  /** The event to add, or the end of tracking. */
  readonly event?: EventInput;
  readonly timeStyle?: TimeStyle;
  readonly stopsTracking?: boolean;
}

const BEIJING = { courierCode: 'cn-post', location: 'Beijing' };
const SAN_RAFAEL = { courierCode: 'us-post', location: 'SAN RAFAEL, CA 94901' };
const CHINA_TIME = { offsetHours: 8 };

const posting: readonly PlayStep[] = [
  { afterMs: 0, event: { ...BEIJING, statusMilestone: 'info_received' }, timeStyle: CHINA_TIME },
  {
    afterMs: 5 * HOUR_MS,
    event: { ...BEIJING, statusMilestone: 'in_transit', status: 'Accepted at the post office' },
    timeStyle: CHINA_TIME,
  },
  {
    afterMs: 14 * HOUR_MS,
    event: {
      ...BEIJING,
      statusMilestone: 'in_transit',
      statusCode: 'transit_origin_country_departure',
      status: 'Left the country of origin',
    },
    timeStyle: 'local',
  },
];

const arrival: PlayStep = {
  afterMs: 40 * HOUR_MS,
  event: {
    ...SAN_RAFAEL,
    statusMilestone: 'in_transit',
    statusCode: 'destination_arrival',
    statusCategory: 'destination',
    status: 'Arrived in the country of destination',
  },
  timeStyle: 'date',
};

function delivery(startMs: number): readonly PlayStep[] {
  return [
    {
      afterMs: startMs,
      event: { ...SAN_RAFAEL, statusMilestone: 'out_for_delivery' },
      timeStyle: 'utc',
    },
    {
      afterMs: startMs + 4 * HOUR_MS,
      event: { ...SAN_RAFAEL, statusMilestone: 'delivered' },
      timeStyle: 'utc',
    },
    { afterMs: startMs + 5 * HOUR_MS, stopsTracking: true },
  ];
}

function customs(afterMs: number, statusCode: string, status: string): PlayStep {
  const event = {
    ...SAN_RAFAEL,
    statusMilestone: 'in_transit',
    statusCategory: 'customs',
    statusCode,
    status,
  };
  return { afterMs, event, timeStyle: 'local' };
}

const scripts = {
  /** Posted in Beijing, delivered in San Rafael three days later; then tracking stops. */
  delivered: [...posting, arrival, ...delivery(3 * DAY_MS)],
  /** A failed delivery, then the shipment is lost; tracking stops. */
  exception: [
    ...posting,
    arrival,
    { afterMs: 3 * DAY_MS, event: { ...SAN_RAFAEL, statusMilestone: 'out_for_delivery' }, timeStyle: 'utc' },
    {
      afterMs: 3 * DAY_MS + 3 * HOUR_MS,
      event: { ...SAN_RAFAEL, statusMilestone: 'failed_attempt' },
      timeStyle: 'utc',
    },
    {
      afterMs: 5 * DAY_MS,
      event: {
        ...SAN_RAFAEL,
        statusMilestone: 'exception',
        statusCode: 'exception_lost',
        status: 'The shipment is lost',
      },
      timeStyle: 'utc',
    },
    { afterMs: 5 * DAY_MS + HOUR_MS, stopsTracking: true },
  ],
  /** Held by customs for two days, cleared, then delivered; tracking stops. */
  customs: [
    ...posting,
    arrival,
    customs(44 * HOUR_MS, 'customs_received', 'Handed to customs'),
    customs(2 * DAY_MS, 'customs_exception', 'Held by customs, papers are missing'),
    customs(4 * DAY_MS, 'customs_cleared', 'Cleared by customs'),
    ...delivery(5 * DAY_MS),
  ],
  /** No courier ever knows the number; after 30 days the service gives up. */
  'never-found': [{ afterMs: 30 * DAY_MS, stopsTracking: true }],
} satisfies Record<string, readonly PlayStep[]>;

/** The name of a play that the fake ships with. */
export type PlayName = keyof typeof scripts;

/** The plays that the fake ships with. */
// Sound: the keys of an object literal are exactly its `keyof`.
export const PLAY_NAMES = Object.keys(scripts) as readonly PlayName[];

/** The steps of a play, in order. */
export function stepsOf(name: PlayName): readonly PlayStep[] {
  return scripts[name];
}

/** Writes an instant the way a courier would. */
export function writeTime(atMs: number, style: TimeStyle = 'utc'): string {
  const offsetHours = typeof style === 'object' ? style.offsetHours : 0;
  const text = new Date(atMs + offsetHours * HOUR_MS).toISOString().slice(0, 19);
  if (style === 'utc') return `${text}Z`;
  if (style === 'local') return text;
  if (style === 'date') return text.slice(0, 10);
  const sign = offsetHours < 0 ? '-' : '+';
  return `${text}${sign}${String(Math.abs(offsetHours)).padStart(2, '0')}:00`;
}

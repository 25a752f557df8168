import type { EventInput } from './shipment.ts';

const HOUR_MS = 3_600_000;

/** How the time of a step is written; real couriers mix all of these. */
export type TimeStyle = { readonly offsetHours: number } | 'utc' | 'local' | 'date';

export interface ScenarioStep {
  /** Milliseconds since the start, at normal speed. */
  readonly afterMs: number;
  readonly event: EventInput | 'stop';
  readonly timeStyle?: TimeStyle;
}

const CHINA_TIME = { offsetHours: 8 };
const BEIJING = { courierCode: 'cn-post', location: 'Beijing' };
const SAN_RAFAEL = { courierCode: 'us-post', location: 'SAN RAFAEL, CA 94901' };

function step(hours: number, place: EventInput, timeStyle: TimeStyle, event: EventInput): ScenarioStep {
  return { afterMs: hours * HOUR_MS, event: { ...place, ...event }, timeStyle };
}

function inTransit(statusCategory: string, statusCode: string, status: string): EventInput {
  return { statusMilestone: 'in_transit', statusCategory, statusCode, status };
}

function stop(hours: number): ScenarioStep {
  return { afterMs: hours * HOUR_MS, event: 'stop' };
}

/** From Beijing to the country of destination in 40 hours. */
const journey: readonly ScenarioStep[] = [
  step(0, BEIJING, CHINA_TIME, { statusMilestone: 'info_received' }),
  step(5, BEIJING, CHINA_TIME, inTransit('transit', 'transit_handover', 'Accepted at the post office')),
  step(
    14,
    BEIJING,
    'local',
    inTransit('transit', 'transit_origin_country_departure', 'Left the country of origin'),
  ),
  step(
    40,
    SAN_RAFAEL,
    'date',
    inTransit('destination', 'destination_arrival', 'Arrived in the country of destination'),
  ),
];

function delivery(hours: number): readonly ScenarioStep[] {
  return [
    step(hours, SAN_RAFAEL, 'utc', { statusMilestone: 'out_for_delivery' }),
    step(hours + 4, SAN_RAFAEL, 'utc', { statusMilestone: 'delivered' }),
    stop(hours + 5),
  ];
}

/** The journeys that `fake.play` can play. */
export const scenarios = {
  /** Posted in Beijing, delivered in San Rafael three days later; then tracking stops. */
  delivered: [...journey, ...delivery(72)],
  /** A failed delivery, then the shipment is lost; tracking stops. */
  exception: [
    ...journey,
    step(72, SAN_RAFAEL, 'utc', { statusMilestone: 'out_for_delivery' }),
    step(75, SAN_RAFAEL, 'utc', { statusMilestone: 'failed_attempt' }),
    step(120, SAN_RAFAEL, 'utc', {
      statusMilestone: 'exception',
      statusCode: 'exception_lost',
      status: 'The shipment is lost',
    }),
    stop(121),
  ],
  /** Held by customs for two days, cleared, then delivered; tracking stops. */
  customs: [
    ...journey,
    step(44, SAN_RAFAEL, 'local', inTransit('customs', 'customs_received', 'Handed to customs')),
    step(
      48,
      SAN_RAFAEL,
      'local',
      inTransit('customs', 'customs_exception', 'Held by customs, papers are missing'),
    ),
    step(96, SAN_RAFAEL, 'local', inTransit('customs', 'customs_cleared', 'Cleared by customs')),
    ...delivery(120),
  ],
  /** No courier ever knows the number; after 30 days the service gives up. */
  'never-found': [stop(720)],
} satisfies Record<string, readonly ScenarioStep[]>;

/** The name of a scenario that `fake.play` knows. */
export type PlayName = keyof typeof scenarios;

// Sound: the keys of an object literal are exactly its `keyof`.
export const PLAY_NAMES = Object.keys(scenarios) as readonly PlayName[];

/** Formats an instant the way a courier would. */
export function formatTime(atMs: number, style: TimeStyle = 'utc'): string {
  const offsetHours = typeof style === 'object' ? style.offsetHours : 0;
  const text = new Date(atMs + offsetHours * HOUR_MS).toISOString().slice(0, 19);
  if (style === 'utc') return `${text}Z`;
  if (style === 'local') return text;
  if (style === 'date') return text.slice(0, 10);
  const sign = offsetHours < 0 ? '-' : '+';
  return `${text}${sign}${String(Math.abs(offsetHours)).padStart(2, '0')}:00`;
}

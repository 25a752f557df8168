// Renders the page of an order for its customer. `html` escapes every value, because couriers write statuses and places.
import { html } from 'hono/html';
import type { TrackerInput } from 'tracking-client';
import {
  type DeliveryEstimate,
  describeMilestone,
  parseOccurrenceDatetime,
  type ShipmentStatus,
  sortEvents,
} from 'tracking-client/events';
import type { WebhookEvent } from 'tracking-client/webhooks';

export interface Order {
  readonly number: string;
  readonly parcel: TrackerInput;
  readonly status: ShipmentStatus | null;
  readonly estimate: DeliveryEstimate | null;
  readonly events: readonly WebhookEvent[];
}

/** Shows day and time as the courier wrote them, usually in local time. Some times have only a date. */
function formatTime(text: string | null | undefined): string {
  const time = parseOccurrenceDatetime(text ?? '');
  if (time === undefined) return text ?? '';
  const hasClock = time.kind !== 'date';
  const wallClock = new Date(Date.parse(`${time.date}T00:00:00Z`) + (hasClock ? time.timeMs : 0));
  const clock = hasClock ? ({ timeStyle: 'short' } as const) : {};
  const isUtc = 'offsetMinutes' in time && time.offsetMinutes === 0;
  return (
    new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', ...clock, timeZone: 'UTC' }).format(wallClock) +
    (isUtc ? ' UTC' : '')
  );
}

function formatEstimate({ from, to }: DeliveryEstimate): string {
  const ends = [from, to].filter((end) => end !== undefined).map(formatTime);
  return [...new Set(ends)].join(' to ');
}

const STYLE = html`<style>
  :root { color-scheme: light dark; font: 1rem/1.5 system-ui }
  body { margin: 5vh auto; max-width: 36rem; overflow-wrap: anywhere; padding: 0 1rem }
  ol { border-left: 2px solid; list-style: none; padding-left: 1.25rem }
  li { margin-bottom: 1rem }
  small { display: block; opacity: .75 }
</style>`;

/** Returns the HTML of the page. */
export function orderPage({ number, parcel, status, estimate, events }: Order) {
  const milestone = status?.milestone ?? 'pending';
  const title = describeMilestone(milestone);
  const isExpected = estimate !== null && milestone !== 'delivered';
  // Some couriers send the place as an object.
  const newestFirst = sortEvents(events).reverse();
  const items = newestFirst.map(
    ({ occurrenceDatetime, status: text, statusMilestone, location }) => html`<li>
      ${text ?? describeMilestone(statusMilestone ?? 'news')}
      <small>${formatTime(occurrenceDatetime)}${typeof location === 'string' && location ? ` · ${location}` : ''}</small>
    </li>`,
  );
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="robots" content="noindex">
  <title>${title}</title>
  ${STYLE}
</head>
<body>
  <main>
    <p>Order ${number}, parcel ${parcel.trackingNumber}</p>
    <h1>${title}</h1>
    ${isExpected ? html`<p>Expected: ${formatEstimate(estimate)}</p>` : ''}
    ${items.length === 0 ? html`<p>No news yet</p>` : html`<ol>${items}</ol>`}
  </main>
</body>
</html>`;
}

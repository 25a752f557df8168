// src/page.js
import { latestEvent, parseOccurrenceDatetime, sortEvents } from 'tracking-client/events';

const WORDS = {
  pending: 'Waiting for news',
  info_received: 'Announced',
  in_transit: 'On its way',
  out_for_delivery: 'Out for delivery',
  failed_attempt: 'Delivery was tried',
  available_for_pickup: 'Ready for pickup',
  delivered: 'Delivered',
  exception: 'Held up',
};
const STEPS = ['info_received', 'in_transit', 'out_for_delivery', 'delivered'];
/** The step that the progress bar shows for a milestone that is not a step itself. */
const STEP = {
  failed_attempt: 'out_for_delivery',
  available_for_pickup: 'out_for_delivery',
  exception: 'in_transit',
};

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text) => String(text ?? '').replace(/[&<>"']/g, (character) => ENTITIES[character]);

/** Returns day and time as the courier wrote them, not in the time zone of server or visitor. Some events have only a date. */
function wallTime(text) {
  const { date, timeMs } = parseOccurrenceDatetime(text ?? '') ?? {};
  if (date === undefined) return { day: text ?? 'Undated', time: '' };
  const wall = new Date(Date.parse(`${date}T00:00:00Z`) + (timeMs ?? 0));
  const format = (style) => new Intl.DateTimeFormat('en-GB', { ...style, timeZone: 'UTC' }).format(wall);
  return {
    day: format({ dateStyle: 'full' }),
    time: timeMs === undefined ? '' : format({ timeStyle: 'short' }),
  };
}

function groupByDay(events) {
  const days = new Map();
  for (const { occurrenceDatetime, status, statusMilestone, location } of sortEvents(events).reverse()) {
    const { day, time } = wallTime(occurrenceDatetime);
    const place = location ? `<small>${escapeHtml(location)}</small>` : '';
    const item = `<li><time>${time}</time><div>${escapeHtml(status ?? WORDS[statusMilestone] ?? 'News')}${place}</div></li>`;
    days.set(day, (days.get(day) ?? '') + item);
  }
  return [...days].map(([day, items]) => `<h2>${escapeHtml(day)}</h2><ul>${items}</ul>`).join('\n');
}

function progress(milestone) {
  const reached = STEPS.indexOf(STEP[milestone] ?? milestone);
  const item = (step, index) =>
    `<li${index <= reached ? ' class="done"' : ''}${index === reached ? ' aria-current="step"' : ''}>${WORDS[step]}</li>`;
  return `<ol aria-label="Progress">${STEPS.map(item).join('')}</ol>`;
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#dfe3e8, #3a424c); --soft: light-dark(#5a6470, #a3adb8);
  --mark: light-dark(#0b7a55, #4cc79c) }
.trouble { --mark: #d1492e }
* { box-sizing: border-box; margin: 0 }
body { background: light-dark(#f3f4f6, #0f1215); color: light-dark(#1b1f24, #eceef1); font: 1rem/1.5 system-ui; padding: 1rem }
main { background: light-dark(#fff, #1b2026); border: 1px solid var(--line); border-radius: 1rem; margin: 2vh auto;
  max-width: 36rem; overflow-wrap: anywhere; padding: clamp(1.25rem, 6vw, 2.5rem) }
h1 { font-size: clamp(1.75rem, 8vw, 2.5rem); line-height: 1.2 }
h2 { font-size: 1rem; padding: 1rem 0 .5rem }
p, small, time { color: var(--soft) }
ol, ul { list-style: none; padding: 0 }
ol { display: flex; gap: .375rem; margin: 1.5rem 0 1rem }
ol li { border-top: .25rem solid var(--line); color: var(--soft); flex: 1; font-size: .75rem; padding-top: .25rem }
ol .done { border-color: var(--mark) }
ol [aria-current] { color: inherit; font-weight: 600 }
ul li { display: grid; grid-template-columns: 4rem 1fr }
ul div { border-left: 2px solid var(--line); padding: 0 0 1rem 1.25rem; position: relative }
ul div::before { background: var(--line); border-radius: 50%; content: ''; height: .75rem; left: calc(-.375rem - 1px);
  position: absolute; top: .375rem; width: .75rem }
h2:first-of-type + ul li:first-child div::before { background: var(--mark) }
small { display: block; font-size: .875rem }`;

/** Returns the HTML of a shipment's page. */
export function shipmentPage({ tracker, shipment, events }) {
  const milestone = shipment?.statusMilestone ?? 'pending';
  const last = latestEvent(events);
  // Not the status of the last event, which can be a scan that was noted after the delivery.
  const title = escapeHtml(WORDS[milestone] ?? 'On its way');
  const isTrouble = milestone === 'exception' || milestone === 'failed_attempt';
  const expected = milestone === 'delivered' ? undefined : shipment?.delivery?.estimatedDeliveryDate;
  const news = last === undefined ? 'No news yet' : `Last news: ${wallTime(last.occurrenceDatetime).day}`;
  const lead = expected ? `Expected: ${wallTime(expected).day}` : news;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${STYLE}</style>
</head>
<body><main${isTrouble ? ' class="trouble"' : ''}>
<p>Parcel ${escapeHtml(tracker.trackingNumber)}</p>
<h1>${title}</h1>
<p>${escapeHtml(lead)}</p>
${progress(milestone)}
${groupByDay(events)}
</main></body>
</html>`;
}

// src/page.js
import {
  deliveryEstimate,
  describeMilestone,
  latestEvent,
  parseOccurrenceDatetime,
  sortEvents,
} from 'tracking-client/events';

const STEPS = ['info_received', 'in_transit', 'out_for_delivery', 'delivered'];
/** The step that the progress bar shows for a milestone that is not a step itself. */
const STEP = {
  failed_attempt: 'out_for_delivery',
  available_for_pickup: 'out_for_delivery',
  exception: 'in_transit',
};

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text) => String(text ?? '').replace(/[&<>"']/g, (character) => ENTITIES[character]);

const DAY = [{ weekday: 'long' }, { day: 'numeric' }, { month: 'long' }, { year: 'numeric' }];

/** Returns day and time as the courier wrote them, not in the time zone of the server. Some events have only a date. */
function readTime(text) {
  const { date, timeMs, offsetMinutes } = parseOccurrenceDatetime(text ?? '') ?? {};
  if (date === undefined) return { day: text ?? 'Undated' };
  const wall = new Date(Date.parse(`${date}T00:00:00Z`) + (timeMs ?? 0));
  const format = (style) => new Intl.DateTimeFormat('en-GB', { ...style, timeZone: 'UTC' }).format(wall);
  const clock = timeMs === undefined ? '' : format({ timeStyle: 'short' });
  return { day: DAY.map(format).join(' '), clock, datetime: text, isUtc: offsetMinutes === 0 };
}

/** Shows a day or a time. SCRIPT turns it into the time of the visitor if it is in UTC. */
function timeElement({ datetime, isUtc }, text) {
  if (datetime === undefined) return `<span>${escapeHtml(text)}</span>`;
  const mark = isUtc ? ' <small>UTC</small>' : '';
  return `<time datetime="${escapeHtml(datetime)}"${isUtc ? ' data-utc' : ''}>${text}${mark}</time>`;
}

function dayElement(text) {
  const time = readTime(text);
  return timeElement(time, time.day);
}

/** Some couriers send the place as an object. Its parts that are texts are shown. */
function readPlace(location) {
  const parts = typeof location === 'object' ? Object.values(location ?? {}) : [location];
  return parts.filter((part) => typeof part === 'string' && part !== '').join(', ');
}

function groupByDay(events) {
  const days = new Map();
  for (const { occurrenceDatetime, status, statusMilestone, location } of sortEvents(events).reverse()) {
    const time = readTime(occurrenceDatetime);
    const where = readPlace(location);
    const place = where === '' ? '' : `<small>${escapeHtml(where)}</small>`;
    const text = escapeHtml(status ?? describeMilestone(statusMilestone ?? 'news')) + place;
    const item = `<li>${timeElement(time, time.clock)}<div>${text}</div></li>`;
    days.set(time.day, (days.get(time.day) ?? '') + item);
  }
  const section = ([day, items]) => `<section><h2>${escapeHtml(day)}</h2><ul>${items}</ul></section>`;
  return [...days].map(section).join('\n');
}

function progress(milestone) {
  const reached = STEPS.indexOf(STEP[milestone] ?? milestone);
  const item = (step, index) =>
    `<li${index <= reached ? ' class="done"' : ''}${index === reached ? ' aria-current="step"' : ''}>${describeMilestone(step)}</li>`;
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
ul li { display: grid; grid-template-columns: 5rem 1fr }
ul div { border-left: 2px solid var(--line); padding: 0 0 1rem 1.25rem; position: relative }
ul div::before { background: var(--line); border-radius: 50%; content: ''; height: .75rem; left: calc(-.375rem - 1px);
  position: absolute; top: .375rem; width: .75rem }
section:first-of-type li:first-child div::before { background: var(--mark) }
div small { display: block; font-size: .875rem }
time small { font-size: .75rem; white-space: nowrap }`;

/** Runs in the browser, which knows the time zone of the visitor. An event can move to another day. */
const SCRIPT = `
const format = (time) => (style) => new Intl.DateTimeFormat('en-GB', style).format(new Date(time.dateTime));
const dayOf = (time) => ${JSON.stringify(DAY)}.map(format(time)).join(' ');
const days = new Map();
for (const item of document.querySelectorAll('section li')) {
  const time = item.querySelector('[data-utc]');
  const day = time ? dayOf(time) : item.closest('section').firstChild.textContent;
  days.set(day, [...(days.get(day) ?? []), item]);
}
for (const time of document.querySelectorAll('[data-utc]')) {
  const text = time.closest('li') ? format(time)({ timeStyle: 'short' }) : dayOf(time);
  time.innerHTML = text + ' <small>your time</small>';
}
for (const section of document.querySelectorAll('section')) section.remove();
for (const [day, items] of days) {
  const [section, title, list] = ['section', 'h2', 'ul'].map((name) => document.createElement(name));
  title.append(day);
  list.append(...items);
  section.append(title, list);
  document.querySelector('main').append(section);
}`;

/** Returns the HTML of a shipment's page. */
export function shipmentPage({ tracker, shipment, events }) {
  const milestone = shipment?.statusMilestone ?? 'pending';
  const last = latestEvent(events);
  // The last event can be a scan that was noted after the delivery, so its status is not the title.
  const title = escapeHtml(describeMilestone(milestone));
  const isTrouble = milestone === 'exception' || milestone === 'failed_attempt';
  const { from, to } = (milestone !== 'delivered' && deliveryEstimate(shipment)) || {};
  const days = [...new Set([from, to].filter(Boolean).map(dayElement))].join(' to ');
  const news = last === undefined ? 'No news yet' : `Last news: ${dayElement(last.occurrenceDatetime)}`;
  const lead = days ? `Expected: ${days}` : news;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${STYLE}</style>
</head>
<body><main${isTrouble ? ' class="trouble"' : ''}>
<p>Parcel ${escapeHtml(tracker.trackingNumber)}</p>
<h1>${title}</h1>
<p>${lead}</p>
${progress(milestone)}
${groupByDay(events)}
</main><script type="module">${SCRIPT}</script></body>
</html>`;
}

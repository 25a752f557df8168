// Demonstrates the package on loopback HTTP, without an API key or a network: create and track shipments, import a thousand,
// receive duplicated and shuffled webhooks, poll one shipment to its end, and handle the failures of a first integration.
// Copy from to-copy/ and docs/recipes/. Run: npm run demo
import pc from 'picocolors';
import {
  type BulkOutcome,
  NoActiveSubscriptionError,
  type TrackerInput,
  TrackingClient,
} from 'tracking-client';
import { sortEvents } from 'tracking-client/events';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { bar, heading, LiveLine, print, printEvent, table } from './support/screen.ts';
import { type ReceivedCounts, startReceiver } from './support/webhook-receiver.ts';

const ORDER = {
  trackingNumber: '9400115901047177598206',
  courierCode: 'us-post',
  clientTrackerId: 'order-1042',
};
const IMPORT_SIZE = 1000;
const FOLLOWED = 50;
const SECRET = 'whsec-example';
/** Plays the scenario of 77 hours in about four seconds. */
const FOUR_SECONDS = { speed: (77 * 3600) / 4 };
const AT_ONCE = { speed: Number.POSITIVE_INFINITY };

const startedAt = performance.now();
const fake = createFakeTrackingService({ resultsDelayMs: 0 });
await using server = await fake.listen();
const client = new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey });
print(`A fake tracking service listens on ${server.url}; no key and no network needed.`, '');

heading('Couriers');
const couriers = await client.couriers.list();
print(couriers.map(({ courierCode, courierName }) => `${courierName} (${courierCode})`).join(', '));

heading('Create one tracker, and the same one again');
const { data: tracker, rateLimit } = await client.trackers.create(ORDER).withResponse();
print(`${tracker.trackingNumber} is ${tracker.trackerId}`);
const again = await client.trackers.create(ORDER);
print(again.trackerId === tracker.trackerId ? 'the same tracker, no quota used' : 'a new tracker?');
print(pc.dim(`${rateLimit.remaining} of ${rateLimit.limit} requests were left in that second`));

heading('Track: create and fetch in one call');
fake.play('LA680658838NL', 'delivered', AT_ONCE);
const tracked = await client.trackers.track({ trackingNumber: 'LA680658838NL' });
print(`${tracked.tracker?.trackingNumber}: ${pc.green(tracked.shipment?.statusMilestone ?? 'unknown')}`);
for (const event of sortEvents(tracked.events)) printEvent(event);

heading('Search on the per-call plan, which this account does not have');
try {
  await client.tracking.search({ trackingNumber: 'LA680658838NL' });
} catch (error) {
  if (!(error instanceof NoActiveSubscriptionError)) throw error;
  print(`handled: ${pc.yellow(error.code ?? '')}, status ${error.status}; use trackers.track instead`);
}

heading(`Import ${IMPORT_SIZE.toLocaleString('en')} shipments, two of them with a mistake`);

function buildTrackingNumber(row: number): string {
  return `LA${String(600_000_000 + row)}NL`;
}

function* rows(): Generator<TrackerInput> {
  for (let row = 0; row < IMPORT_SIZE; row += 1) {
    if (row === 411) yield { ...ORDER, trackingNumber: buildTrackingNumber(row) };
    else if (row === 702) yield { trackingNumber: 'n/a' };
    else yield { trackingNumber: buildTrackingNumber(row), shipmentReference: `row ${row}` };
  }
}

const importLine = new LiveLine();
const run = client.trackers.createMany(rows(), {
  onProgress: ({ total, created, error, invalid }) => {
    const share = total / IMPORT_SIZE;
    const counts = `${created} created, ${error + invalid} not`;
    importLine.update(`${bar(share)} ${String(Math.round(share * 100)).padStart(3)}%  ${counts}`, share);
  },
});
const refused: BulkOutcome[] = [];
for await (const outcome of run) {
  if (outcome.status !== 'created' && outcome.status !== 'existing') refused.push(outcome);
}
for (const { index, status, errors } of refused) {
  print(`${pc.yellow(status)}, ${errors?.[0]?.message ?? errors?.[0]?.code}`, `  row ${index}: `);
}

heading(`Webhooks of ${FOLLOWED} shipments, each sent three times and out of order`);
const webhookLine = new LiveLine();
function showCounts({ received, handled, duplicates }: Readonly<ReceivedCounts>): void {
  const numbers = [
    `received ${String(received).padStart(4)}`,
    pc.green(`new ${String(handled).padStart(3)}`),
    pc.yellow(`duplicate ${String(duplicates).padStart(4)}`),
  ];
  // The scenario `delivered` has six events.
  webhookLine.update(numbers.join('   '), received / (FOLLOWED * 6 * 3));
}
await using receiver = await startReceiver(SECRET, showCounts);
fake.webhooks.take(); // Drop the webhooks from before the receiver started.
for (let row = 0; row < FOLLOWED; row += 1) fake.play(buildTrackingNumber(row), 'delivered', AT_ONCE);
const report = await createWebhookSender({
  target: receiver.url,
  secret: SECRET,
  fake,
  duplicates: 2,
  shuffle: true,
  concurrency: 8,
  until2xx: true,
}).flush();
print(pc.dim(`${report.sent.length} requests for ${report.items} webhooks, ${report.lost} lost`));

heading('Poll one shipment until the service stops tracking it');
fake.play(ORDER.trackingNumber, 'delivered', FOUR_SECONDS);
for await (const { poll, newEvents, stopped } of client.trackers.poll(tracker.trackerId, {
  intervalMs: 1000,
})) {
  const news = sortEvents(newEvents).map((event) => event.status ?? event.statusCode);
  print(news.length === 0 ? pc.dim('nothing new') : news.join(', '), `  poll ${poll}: `);
  if (stopped) print(`${pc.green('●')} no longer tracked, so the poll has ended`);
}

heading('Requests');
const statusesByEndpoint = new Map<string, number[]>();
for (const { endpoint = 'none', status } of fake.requests) {
  statusesByEndpoint.set(endpoint, [...(statusesByEndpoint.get(endpoint) ?? []), status ?? 0]);
}
const sent = [...statusesByEndpoint].map(([endpoint, statuses]) => {
  const succeeded = statuses.filter((status) => status < 300).length;
  const tooMany = statuses.filter((status) => status === 429).length;
  return [endpoint, statuses.length, succeeded, statuses.length - succeeded - tooMany, tooMany];
});
table(['Endpoint', 'Requests', 'Succeeded', 'Refused', 'Too many (429)'], sent);

heading('Results');
const { created, error, invalid } = run.summary();
const { received, handled, duplicates } = receiver.counts;
table(
  ['Result', 'Count'],
  [
    ['Trackers created by the import', created],
    ['Rows with a mistake', error + invalid],
    ['Webhook events received', received],
    ['Events handled once', handled],
    ['Duplicates dropped', duplicates],
  ],
);
console.log(pc.dim(`\n${((performance.now() - startedAt) / 1000).toFixed(1)} seconds.`));

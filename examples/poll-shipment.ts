// Prints a live timeline in the terminal: creates a tracker, polls its results, and prints every new event once, until the
// service stops tracking. Without TRACKING_BASE_URL, an embedded fake service plays three days in a few seconds. Copy
// to-copy/follow-shipment.ts into your app. Run: npx tsx examples/poll-shipment.ts [tracking number]
import pc from 'picocolors';
import { type PollUpdate, TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { printEvent } from './support/screen.ts';
import { followShipment } from './to-copy/follow-shipment.ts';

const trackingNumber = process.argv[2] ?? 'RR123456785CN';
const hasService = process.env['TRACKING_BASE_URL'] !== undefined;
const isLive = process.stdout.isTTY === true;
const SPEED = 45_000;

/** Creates a client for the service at `TRACKING_BASE_URL`, or for a fake service that plays the shipment. */
function makeClient(): TrackingClient {
  if (hasService) return new TrackingClient();
  const fake = createFakeTrackingService({ play: 'delivered', speed: SPEED, resultsDelayMs: 1500 });
  return new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
}

/** Rewrites the last line of a terminal; prints nothing into a file or a pipe. */
function showStatus(text: string): void {
  if (isLive) process.stdout.write(`\r\u001b[2K${text === '' ? '' : `  ${pc.dim(text)}`}`);
}

function show({ newEvents, poll, tracking, stopped }: PollUpdate): void {
  showStatus('');
  for (const event of newEvents) printEvent(event);
  const hasNews = tracking !== undefined && tracking.events.length > 0;
  const milestone = hasNews ? tracking.shipment?.statusMilestone : 'no news yet';
  if (!stopped) showStatus(`… ${milestone}, poll ${poll}`);
}

console.log(pc.bold(trackingNumber));
showStatus('… waiting for the first results');

// A real service is polled less often, because couriers report a few times a day.
const rhythm = hasService
  ? { initialDelayMs: 5000, intervalMs: 30_000, maxDurationMs: 600_000 }
  : { intervalMs: 1000, maxDurationMs: 60_000 };
let events = 0;
const last = await followShipment(makeClient(), trackingNumber, rhythm, (update) => {
  show(update);
  events += update.newEvents.length;
});

showStatus('');
const milestone = last?.tracking?.shipment?.statusMilestone ?? 'unknown';
const end = last?.stopped ? 'the service has stopped tracking' : 'time is up, the service is still tracking';
console.log(`${pc.bold(milestone)}: ${events} events in ${last?.poll ?? 0} polls; ${end}.`);

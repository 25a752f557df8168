// Plays examples/shop with a fake service: sixty orders, and a week in a minute. Run: npm run shop
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describeMilestone } from 'tracking-client/events';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';

const ORDERS = 60;
const WEEK_HOURS = 7 * 24;
const WEEK_MS = Number(process.argv[2] ?? 60) * 1000;
/** The orders are placed in this time. The longest scenario takes the rest of the week. */
const PLACING_MS = (WEEK_MS * 40) / WEEK_HOURS;

const SCENARIOS = ['customs', 'delivered', 'delivered', 'exception', 'delivered', 'never-found'] as const;

const SECRET = 'whsec-example';
const STAFF_TOKEN = 'staff-example';
const STAFF = { authorization: `Bearer ${STAFF_TOKEN}`, 'content-type': 'application/json' };

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

const ending = new AbortController();
const { signal } = ending;
// npm passes on a signal that this program also gets from the terminal, so each signal can come twice.
// package.json does not run this with the command `tsx`, which kills a program that is not fast enough to respond to a signal.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => ending.abort());

const fake = createFakeTrackingService({
  speed: (WEEK_HOURS * 3_600_000) / WEEK_MS,
  resultsDelayMs: 0,
});
await using service = await fake.listen();
const port = await findFreePort();
const shopUrl = `http://localhost:${port}`;
const folder = await mkdtemp(join(tmpdir(), 'play-shop-'));

const main = fileURLToPath(new URL('../shop/main.ts', import.meta.url));
const shop = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main], {
  cwd: folder, // the shop keeps its data there
  detached: true, // so that Ctrl-C reaches the shop only through this program
  stdio: ['ignore', 'pipe', 'inherit'],
  env: {
    ...process.env,
    TSX_TSCONFIG_PATH: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)),
    TRACKING_BASE_URL: service.url,
    TRACKING_API_KEY: fake.apiKey,
    TRACKING_WEBHOOK_SECRET: SECRET,
    STAFF_TOKEN,
    PORT: String(port),
    SHOP_URL: shopUrl,
    DATABASE_URL: undefined,
  },
});
shop.stdout.pipe(process.stdout);
const hasEnded = once(shop, 'exit');
void hasEnded.then(() => ending.abort());

/** Returns the tracking number of a new parcel. One in twenty has a mistake, and one in twenty waits for its recipient. */
function sendParcel(index: number): string {
  if (index % 20 === 7) return '123456789'; // the service refuses a run of digits
  if (index % 20 === 11) return `SHIP24_SAMPLE_AVAILABLE_FOR_PICKUP_${100 + index}`;
  const trackingNumber = `LA${600_000_000 + index}NL`;
  fake.play(trackingNumber, SCENARIOS[index % SCENARIOS.length] ?? 'delivered');
  return trackingNumber;
}

async function place(number: string, trackingNumber: string): Promise<string> {
  const body = JSON.stringify({ number, email: `${number}@example.com`, parcel: { trackingNumber } });
  const response = await fetch(`${shopUrl}/staff/orders`, { method: 'POST', headers: STAFF, body, signal });
  const { page }: { page: string } = await response.json();
  return shopUrl + page;
}

async function placeOrders(): Promise<void> {
  for (let index = 0; index < ORDERS; index += 1) {
    const number = String(1001 + index);
    const trackingNumber = sendParcel(index);
    const page = await place(number, trackingNumber);
    if (index === 0) console.log(`Open this page, and reload it while the week passes: ${page}\n`);
    if (index % 10 === 5) await place(number, trackingNumber); // somebody clicks twice
    await sleep(PLACING_MS / ORDERS, undefined, { signal });
  }
}

/** Waits until the shop has nothing to do: its jobs run once a second. */
async function waitForSilence(): Promise<void> {
  const prints = () =>
    once(shop.stdout, 'data', { signal: AbortSignal.any([signal, AbortSignal.timeout(3_000)]) });
  while (!signal.aborted && (await prints().then(Boolean, () => false)));
}

interface ListedOrder {
  readonly number: string;
  readonly refused: string | null;
  readonly status: { readonly milestone: string } | null;
}

async function printOrders(): Promise<void> {
  const response = await fetch(`${shopUrl}/staff/orders`, { headers: STAFF, signal });
  const orders: readonly ListedOrder[] = await response.json();
  const counts = new Map<string, number>();
  for (const { number, refused, status } of orders) {
    if (refused !== null) console.log(`Order ${number} was refused: ${refused}`);
    const state = refused === null ? describeMilestone(status?.milestone ?? 'pending') : 'Refused';
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  const states = [...counts].map(([state, count]) => `${state} ${count}`);
  console.log(`${orders.length} orders after a week: ${states.join(', ')}`);
}

try {
  await once(shop.stdout, 'data', { signal }); // the shop prints that it has started
  const sender = createWebhookSender({
    fake,
    target: `${shopUrl}/webhooks`,
    secret: SECRET,
    duplicates: 2,
    shuffle: true,
    concurrency: 4,
    until2xx: true,
  });
  const stopSending = sender.start();
  try {
    await placeOrders();
    await sleep(WEEK_MS - PLACING_MS, undefined, { signal });
    await waitForSilence();
    await printOrders();
  } finally {
    await stopSending();
  }
} catch (error) {
  if (!signal.aborted) throw error;
} finally {
  if (shop.exitCode !== null) process.exitCode = 1; // the shop has failed
  shop.kill();
  await hasEnded;
  await rm(folder, { recursive: true });
}

import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { TrackingClient } from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
} from 'tracking-client/testing';
import { vi } from 'vitest';
import type { WebhookTarget } from '../../../src/testing/webhooks/sender.ts';
import type { Snippet } from './documents.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The base URL that the documents give their service. */
const SERVICE = 'https://api.example.com/public/v1';
const SECRET = 'whsec-readme';
/** The two numbers of the documents. */
const NUMBERS = ['RR123456785CN', 'LA680658838NL'];
const A_WHILE_MS = 5 * 60_000;
const FLYING_SPEED = 3600;
const OUTAGE_MS = 60 * 60_000;

/** The result of running a program. */
export interface Ran {
  /** The console output. */
  readonly output: string;
  /** The status of each webhook that was sent to a server of the program. */
  readonly statuses: readonly (number | null)[];
  /** Servers that still listen after SIGTERM, if the program handles SIGTERM. */
  readonly leftListening: number;
  /** Timers that are still set at the end, if the test moved the time. */
  readonly leftTimers: number;
}

/**
 * Runs an unchanged program of the documents: its service is a fake one, and its servers listen on free ports. The mark
 * above the block says what else happens.
 * - `time passes`: two journeys of days run their course
 * - `time flies`: the same two journeys, in 77 seconds
 * - `an outage of an hour`: with `time passes`, the service carries out the first request, but does not respond for an hour
 * - `webhooks`: every server of the program receives the webhooks of two events, each three times
 */
export async function runProgram(
  { code, staged }: Snippet,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const fake = createFakeTrackingService();
  const output: string[] = [];
  const servers: Server[] = [];
  const before = process.listeners('SIGTERM');
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'readme-'));
  const file = join(folder, 'program.ts');
  await writeFile(file, code);
  setStage(fake, output, servers, environment);
  try {
    const passesTime = /time (passes|flies)/.test(staged);
    const speed = staged.includes('time flies') ? FLYING_SPEED : 1;
    if (passesTime) for (const number of NUMBERS) fake.play(number, 'delivered', { speed });
    const hasOutage = staged.includes('an outage of an hour');
    const exported = passesTime ? await importWhileTimePasses(file, fake, hasOutage) : await import(file);
    const statuses: (number | null)[] = [];
    if (staged.includes('webhooks')) {
      const urls = await Promise.all(servers.map(findUrl));
      for (const target of [...urls, ...findTargets(exported)])
        statuses.push(...(await sendEvents(fake, target)));
    }
    const onTerminate = process.listeners('SIGTERM').filter((listener) => !before.includes(listener));
    for (const listener of onTerminate) {
      process.off('SIGTERM', listener);
      await listener('SIGTERM');
    }
    const leftListening = onTerminate.length === 0 ? 0 : servers.filter(({ listening }) => listening).length;
    const leftTimers = passesTime ? vi.getTimerCount() : 0;
    return { output: output.join('\n').replace(/ +$/gm, ''), statuses, leftListening, leftTimers };
  } finally {
    vi.useRealTimers();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    for (const server of servers) server.close();
    await rm(folder, { recursive: true });
  }
}

function setStage(
  fake: FakeTrackingService,
  output: string[],
  servers: Server[],
  environment: Readonly<Record<string, string>>,
): void {
  const variables = {
    TRACKING_BASE_URL: SERVICE,
    TRACKING_API_KEY: 'any',
    TRACKING_WEBHOOK_SECRET: SECRET,
    ...environment,
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', (input: string | URL | Request, init?: RequestInit) => {
    const { origin } = new URL(input instanceof Request ? input.url : input);
    return origin === new URL(SERVICE).origin ? fake.fetch(input, init) : fetch(input, init);
  });
  vi.spyOn(console, 'warn').mockImplementation(() => {});
  for (const method of ['log', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...values) => void output.push(format(...values)));
  }
  // Ports like 3000 are often taken.
  const { listen } = Server.prototype;
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args: unknown[]) {
    servers.push(this);
    const onListening = args.find((value) => typeof value === 'function');
    return listen.call(this, { port: 0, host: '127.0.0.1' }, () => onListening?.());
  });
}

async function importWhileTimePasses(
  file: string,
  fake: FakeTrackingService,
  hasOutage: boolean,
): Promise<object> {
  vi.useFakeTimers();
  if (hasOutage) beginOutage(fake);
  let isOver = false;
  const run = import(file).finally(() => {
    isOver = true;
  });
  // Loading the program takes real time, so fake time stands still meanwhile.
  await vi.waitUntil(() => fake.requests.length > 0 || isOver, { interval: 1, timeout: 20_000 });
  while (!isOver) await vi.advanceTimersByTimeAsync(A_WHILE_MS);
  return run;
}

/** Its first request is carried out without a response; the others get a 503. */
function beginOutage(fake: FakeTrackingService): void {
  fake.fail('*', { kind: 'commitThenDrop' });
  const { cancel } = fake.fail('*', { status: 503, times: Number.POSITIVE_INFINITY });
  setTimeout(cancel, OUTAGE_MS);
}

async function findUrl(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening');
  // A server that listens on TCP has an address of this form.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
}

/** The handlers that a program exports, as functions or Hono apps; a handler with several names counts once. */
function findTargets(exported: object): WebhookTarget[] {
  return [...new Set<unknown>(Object.values(exported))].map((value): WebhookTarget => {
    // The compiler checks in another test that the program exports one of these.
    const app = value as WebhookTarget | { fetch(request: Request): Promise<Response> };
    if (typeof app !== 'object' || !('fetch' in app)) return app as WebhookTarget;
    return (request: Request) => app.fetch(new Request('http://app.test/webhooks', request));
  });
}

async function sendEvents(fake: FakeTrackingService, target: WebhookTarget): Promise<(number | null)[]> {
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const trackingNumber = `RR12345678${5 + fake.trackers.length}CN`;
  await client.trackers.create({ trackingNumber });
  fake.shipment(trackingNumber).addEvent({ statusMilestone: 'in_transit' }).deliver();
  const sender = createWebhookSender({
    ...{ target, secret: SECRET, fake, duplicates: 2, until2xx: true },
  });
  const isThere = (await sender.probe()) ? 200 : null;
  return [isThere, ...(await sender.flush()).sent.map(({ status }) => status)];
}

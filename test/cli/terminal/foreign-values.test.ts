import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { buildEvent, buildWebhookMessage, createFakeTrackingService } from 'tracking-client/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { run } from '../../../src/cli/program.ts';
import { connect, makeTerminal, runLine, webhookUrlIn } from '../make-terminal.ts';

const NUMBER = 'RR123456785CN';
/** What a person never wants to read, and the start of an escape sequence. */
const LEAKS = /undefined|\[object Object\]|(?!\n)\p{Cc}/u;

/** A value of any type in the place of a field. */
const anything = fc.oneof(
  fc.constantFrom(null, 0, true, '', '\u001b[2J', [], {}, [null], { a: { b: { c: 1 } } }),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Number of random draws. Before them, an object replaces each field once: text methods and templates fail on objects. */
const RANDOM_RUNS = 10;

/** Copies JSON with another value for each field of the name. */
function replaceField(json: unknown, field: string, value: unknown): unknown {
  if (Array.isArray(json)) return json.map((item) => replaceField(item, field, value));
  if (typeof json !== 'object' || json === null) return json;
  const entries = Object.entries(json).map(([name, child]) =>
    name === field ? [name, value] : [name, replaceField(child, field, value)],
  );
  return Object.fromEntries(entries);
}

/** Connects to a fake that tracks one shipment to its end, and replaces a field in each of its responses. */
async function connectTo(field: string, value: unknown): Promise<void> {
  const fake = connect(createFakeTrackingService({ resultsDelayMs: 0, limits: false }));
  const headers = { authorization: 'Bearer any', 'content-type': 'application/json' };
  const body = JSON.stringify({ trackingNumber: NUMBER, clientTrackerId: 'mine' });
  await fake.fetch(`${fake.baseUrl}/trackers`, { method: 'POST', headers, body });
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const response = await fake.fetch(url, init);
    const changed = replaceField(await response.json(), field, value);
    return Response.json(changed, { status: response.status });
  });
}

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tracking-client-foreign-'));
  await writeFile(join(folder, 'rows.csv'), `trackingNumber\n${NUMBER}\nLA680658838NL\nx\n`);
});
afterAll(() => rm(folder, { recursive: true }));

const EVENT_FIELDS = ['occurrenceDatetime', 'order', 'status', 'statusCode', 'statusMilestone', 'location'];
const SHIPMENT_FIELDS = ['shipment', 'delivery', 'estimatedDeliveryDate'];
const TRACKER_FIELDS = ['trackerId', 'trackingNumber', 'clientTrackerId', 'createdAt', 'shipmentReference'];
const COURIER_FIELDS = ['courierName', 'countryCode', 'requiredFields', 'isDeprecated'];

it.each([
  ['list', 'createdAt', 20_251_119, 'stopped  20251119'],
  ['list', 'isTracked', 'no', 'unknown  '],
  ['list --tracked', 'isTracked', null, 'unknown  '],
  [`track ${NUMBER}`, 'location', { city: 'Lyon' }, '· Lyon\n'],
  [
    `show ${NUMBER}`,
    'location',
    { city: 'Ly\u0007on', zip: 69_001, geo: { x: 'y' }, state: '', at: 'FR' },
    '· Ly on, FR\n',
  ],
  [`show ${NUMBER}`, 'location', ['Lyon', null, 'FR'], '· Lyon, FR\n'],
  [`show ${NUMBER}`, 'location', { geo: { lat: 45.7 } }, 'Delivered\n'],
  [`watch ${NUMBER}`, 'statusMilestone', ['delivered'], "  [ 'delivered' ], and no longer tracked"],
  ['couriers us-post', 'courierName', { en: 'USPS' }, "us-post  { en: 'USPS' }"],
])('%s, `%s` is %j → prints %j', async (line, field, value, printed) => {
  await connectTo(field, value);
  const { exitCode, stdout } = await runLine(line);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(printed);
});

describe.each([
  ['list', [...TRACKER_FIELDS, 'isTracked']],
  [
    `track ${NUMBER}`,
    [...EVENT_FIELDS, ...SHIPMENT_FIELDS, ...TRACKER_FIELDS, 'isTracked', 'tracker', 'events'],
  ],
  [`show ${NUMBER}`, [...EVENT_FIELDS, ...SHIPMENT_FIELDS, 'trackingNumber', 'tracker', 'events']],
  // With another `isTracked`, a watch goes on for many intervals.
  [`watch ${NUMBER}`, [...EVENT_FIELDS, ...SHIPMENT_FIELDS, 'trackingNumber']],
  ['couriers us', COURIER_FIELDS],
  ['stop mine --by client-id', TRACKER_FIELDS],
  ['resend mine --by client-id', ['totalResent', 'summary']],
  [`stop ${NUMBER} --by number`, [...TRACKER_FIELDS, 'tracker']],
  ['import rows.csv --overwrite --failures failures.csv', [...TRACKER_FIELDS, 'code', 'message', 'errors']],
])('%s', (line, fields) => {
  it('a field of any type in the responses, as text or JSON → printed or refused, never a crash', async () => {
    const command = line.replace(/\S+\.csv/g, (name) => join(folder, name));
    const flags = fc.constantFrom('', ' --json');
    const property = fc.asyncProperty(
      fc.constantFrom(...fields),
      anything,
      flags,
      async (field, value, flag) => {
        await connectTo(field, value);
        const { exitCode, stdout } = await runLine(command + flag);
        expect([0, 1, 2, 3]).toContain(exitCode);
        expect(stdout).not.toMatch(LEAKS);
      },
    );
    const examples = fields.map((field): [string, unknown, string] => [field, { a: 1 }, '']);
    await fc.assert(property, { examples, numRuns: examples.length + RANDOM_RUNS });
  });
});

it.each([[[]], [['--json']]])(
  'listen %j, a field of another type in a webhook → 200 or 422; printed, never a crash',
  async (flags) => {
    const { terminal, output, interrupt } = makeTerminal();
    const exitCode = run(['listen', '--port', '0', ...flags], terminal);
    const url = await webhookUrlIn(output);
    const headers = { 'content-type': 'application/json' };
    for (const field of [...EVENT_FIELDS, ...TRACKER_FIELDS, 'metadata', 'topic', 'data', 'eventId'])
      for (const value of [{ city: 'Lyon' }, ['x'], 0, null]) {
        const message = buildWebhookMessage({
          events: [buildEvent({ eventId: `${field} ${typeof value}` })],
        });
        const body = JSON.stringify(replaceField({ trackings: [message] }, field, value));
        expect([200, 422]).toContain((await fetch(url, { method: 'POST', body, headers })).status);
      }
    interrupt();
    expect(await exitCode).toBe(0);
    expect(output.stdout).toMatch(/· Lyon\n|"location":\{"city":"Lyon"\}/);
    expect(output.stdout).not.toMatch(LEAKS);
  },
);

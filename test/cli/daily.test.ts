import { TrackingClient } from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import { describe, expect, it } from 'vitest';
import { couriers } from '../../src/cli/couriers.ts';
import { list } from '../../src/cli/list.ts';
import { resend } from '../../src/cli/resend.ts';
import { stop } from '../../src/cli/stop.ts';
import { makeTerminal } from './make-terminal.ts';

const NUMBERS = ['RR123456785CN', 'LA680658838NL', 'LP000000001CN'];

async function setUp(options: FakeTrackingServiceOptions = {}) {
  const fake = createFakeTrackingService({ resultsDelayMs: 0, ...options });
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const ids: string[] = [];
  for (const [index, trackingNumber] of NUMBERS.entries()) {
    const input = { trackingNumber, clientTrackerId: `order-${index}` };
    ids.push((await client.trackers.create(input)).trackerId);
  }
  const [first = '', second = '', third = ''] = ids;
  return { fake, client, ids: [first, second, third] as const, ...makeTerminal() };
}

/** Pushes what waits: only what was pushed can be sent again. */
function push(fake: FakeTrackingService) {
  return createWebhookSender({ target: () => new Response(), fake }).flush();
}

describe('list', () => {
  it('trackers → number, state, date, ids, newest first, exit code 0', async () => {
    const { fake, client, ids, terminal, lines } = await setUp();
    fake.shipment(NUMBERS[1] ?? '').stopTracking();
    expect(await list(client, { terminal })).toBe(0);
    expect(lines()).toEqual([
      expect.stringMatching(/^Number +State +Created +Id +Client id$/),
      expect.stringMatching(new RegExp(`^LP000000001CN +tracked +\\d+ \\w+ +${ids[2]} +order-2$`)),
      expect.stringMatching(/^LA680658838NL +stopped /),
      expect.stringMatching(/^RR123456785CN +tracked /),
    ]);
  });

  it('no client ids → no column for them, and at most 80 columns', async () => {
    const fake = createFakeTrackingService();
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    await client.trackers.create({ trackingNumber: '9400115901047177598206' });
    const { terminal, lines } = makeTerminal();
    await list(client, { terminal });
    expect(lines()[0]).toMatch(/Id$/);
    expect(Math.max(...lines().map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('--tracked → without those that have stopped', async () => {
    const { fake, client, terminal, output } = await setUp();
    fake.shipment(NUMBERS[1] ?? '').stopTracking();
    await list(client, { tracked: true, terminal });
    expect(output.stdout).not.toContain(NUMBERS[1]);
    expect(output.stdout.trim().split('\n')).toHaveLength(3);
  });

  it('more than --limit → the newest, and a word about it', async () => {
    const { client, terminal, lines, output } = await setUp();
    await list(client, { limit: 2, terminal });
    expect(lines()).toHaveLength(3);
    expect(output.stderr).toBe('The newest 2; --limit shows more\n');
  });

  it('as many as --limit → no such word', async () => {
    const { client, terminal, output } = await setUp();
    await list(client, { limit: 3, terminal });
    expect(output.stderr).toBe('');
  });

  it('--json → a record a line', async () => {
    const { client, ids, terminal, lines } = await setUp();
    await list(client, { json: true, terminal });
    expect(lines().map((line) => JSON.parse(line).trackerId)).toEqual(ids.toReversed());
  });

  it('no trackers → says so, exit code 0', async () => {
    const fake = createFakeTrackingService();
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    const { terminal, output } = makeTerminal();
    expect(await list(client, { terminal })).toBe(0);
    expect(output).toEqual({ stdout: '', stderr: 'There are no trackers\n' });
  });
});

describe('stop', () => {
  it.each([
    ['id', 0],
    ['client-id', 'order-0'],
    ['number', 'RR123456785CN'],
  ] as const)('by %s → no longer tracked, exit code 0', async (by, name) => {
    const { fake, client, ids, terminal, lines } = await setUp();
    fake.shipment('RR123456785CN').addEvent({});
    expect(await stop(client, [name === 0 ? ids[0] : name], { by, terminal })).toBe(0);
    expect(lines()).toEqual([`RR123456785CN  no longer tracked  ${ids[0]}`]);
    expect(fake.trackers.map(({ isTracked }) => isTracked)).toEqual([false, true, true]);
  });

  it('a number of two trackers → neither is stopped, both ids are named, exit code 1', async () => {
    const { fake, client, ids, terminal, output } = await setUp();
    const { trackerId } = await client.trackers.create({
      trackingNumber: 'RR123456785CN',
      destinationCountryCode: 'US',
    });
    fake.shipment({ trackerId }).addEvent({});
    fake.shipment({ trackerId: ids[0] }).addEvent({});
    expect(await stop(client, ['RR123456785CN'], { by: 'number', terminal })).toBe(1);
    expect(output.stderr).toMatch(/^RR123456785CN {2}2 trackers have this number: \S+, \S+\n$/);
    expect(output.stderr).toContain(ids[0]);
    expect(fake.trackers.every(({ isTracked }) => isTracked)).toBe(true);
  });

  it('an id that is unknown → one line, the others are stopped, exit code 1', async () => {
    const { fake, client, ids, terminal, output } = await setUp();
    expect(await stop(client, ['gone', ids[1]], { by: 'id', terminal })).toBe(1);
    expect(output.stderr).toMatch(/^gone {2}.*tracker_not_found.*\n$/);
    expect(fake.trackers.map(({ isTracked }) => isTracked)).toEqual([true, false, true]);
  });

  it('a wrong key → rejects at the first, for the others would fail alike', async () => {
    const { fake, ids, terminal } = await setUp();
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: 'any', fetch: fake.fetch });
    fake.fail('trackers.update', { status: 401, code: 'auth_invalid_api_key', times: 2 });
    await expect(stop(client, [...ids], { by: 'id', terminal })).rejects.toMatchObject({
      code: 'auth_invalid_api_key',
    });
    expect(fake.trackers.every(({ isTracked }) => isTracked)).toBe(true);
  });

  it('--json → the record, or the error, a line each', async () => {
    const { client, ids, terminal, lines } = await setUp();
    await stop(client, ['gone', ids[0]], { by: 'id', json: true, terminal });
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      { name: 'gone', error: expect.stringContaining('tracker_not_found') },
      { trackerId: ids[0], isTracked: false },
    ]);
  });
});

describe('resend', () => {
  it('a tracker with events → how many are sent again, exit code 0', async () => {
    const { fake, client, ids, terminal, lines } = await setUp();
    fake.shipment('RR123456785CN').addEvent({}).deliver();
    await push(fake);
    expect(await resend(client, [ids[0]], { by: 'id', terminal })).toBe(0);
    expect(lines()).toEqual([`${ids[0]}  2 events will be sent again`]);
    expect(fake.webhooks.pending.filter(({ isReplay }) => isReplay)).not.toEqual([]);
  });

  it('--json → the count', async () => {
    const { fake, client, ids, terminal, lines } = await setUp();
    fake.shipment('RR123456785CN').deliver();
    await push(fake);
    await resend(client, ['RR123456785CN'], { by: 'number', json: true, terminal });
    expect(lines().map((line) => JSON.parse(line))).toEqual([{ id: ids[0], totalResent: 1 }]);
  });

  it('no webhook URL → one line says so, exit code 1', async () => {
    const { client, ids, terminal, output } = await setUp({ webhooks: false });
    expect(await resend(client, [ids[0]], { by: 'id', terminal })).toBe(1);
    expect(output.stderr).toContain('webhook_url_missing');
  });
});

describe('couriers', () => {
  it('a text → the couriers that have it in code, name or country, with what they need', async () => {
    const { client, terminal, lines } = await setUp();
    expect(await couriers(client, 'LA POSTE', { terminal })).toBe(0);
    expect(lines()).toEqual([
      expect.stringMatching(/^Code +Name +Country +Needs$/),
      expect.stringMatching(/^fr-post +La Poste/),
    ]);
  });

  it('no text and --json → all of them, a record a line', async () => {
    const { client, terminal, lines } = await setUp();
    await couriers(client, '', { json: true, terminal });
    expect(lines().length).toBeGreaterThan(2);
    expect(JSON.parse(lines()[0] ?? '')).toHaveProperty('courierCode');
  });

  it('a text that none has → says so, exit code 3', async () => {
    const { client, terminal, output } = await setUp();
    expect(await couriers(client, 'nobody', { terminal })).toBe(3);
    expect(output).toEqual({ stdout: '', stderr: 'No courier has "nobody" in its code, name or country\n' });
  });
});

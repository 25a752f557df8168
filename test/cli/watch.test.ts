import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Watch } from '../../src/cli/watch.ts';
import { makeTerminal } from './make-terminal.ts';

const [ONE, OTHER] = ['RR123456785CN', 'LA680658838NL'];
const HOUR_MS = 3_600_000;

function setUp(
  options: { fake?: FakeTrackingService; json?: boolean; isLive?: boolean; intervalMs?: number } = {},
) {
  const { fake = createFakeTrackingService(), json = false, isLive = false, intervalMs = HOUR_MS } = options;
  const made = makeTerminal({ isLive });
  const createClientWith: ConstructorParameters<typeof Watch>[0] = (logger) =>
    new TrackingClient({
      baseUrl: fake.baseUrl,
      apiKey: fake.apiKey,
      fetch: fake.fetch,
      logger,
      retry: false,
    });
  const watch = new Watch(createClientWith, { interval: intervalMs, json }, made.terminal);
  const run = (...numbers: string[]) => watch.run(numbers.map((trackingNumber) => ({ trackingNumber })));
  const runAll = () => watch.run(undefined);
  return { fake, run, runAll, ...made };
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(2026, 2, 10) });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('watch', () => {
  it('a number until tracking ends → one line for each event, then a line for the end, exit code 0', async () => {
    const { fake, run, lines } = setUp();
    fake.play(ONE, 'delivered');
    const exitCode = run(ONE);
    await vi.advanceTimersByTimeAsync(80 * HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(lines()).toEqual([
      `${ONE}  no results yet`,
      expect.stringMatching(/^RR123456785CN {2}○ [ \d]{2} \w{3} \d\d:\d\d {2}Shipping label created · B/),
      expect.stringMatching(/Accepted at the post office/),
      expect.stringMatching(/Left the country of origin/),
      expect.stringMatching(/Arrived in the country of destination/),
      expect.stringMatching(/Out for delivery/),
      expect.stringMatching(/^RR123456785CN {2}● [ \d]{2} \w{3} \d\d:\d\d {2}Delivered/),
      `${ONE}  delivered, and no longer tracked`,
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['lines', false, new RegExp(`^${ONE}  delivered, and no longer tracked$`, 'm')],
    ['a table on a terminal', true, /^b@d +failed/m],
  ])(
    'a number that breaks a rule, in %s → the whole reason on stderr, the other numbers are watched, exit code 1',
    async (_, isLive, printed) => {
      const { fake, run, output } = setUp({ isLive });
      fake.shipment(ONE).deliver().stopTracking();
      const exitCode = run('b@d', ONE);
      await vi.advanceTimersByTimeAsync(HOUR_MS);
      expect(await exitCode).toBe(1);
      expect(output.stdout).toMatch(printed);
      expect(output.stderr).toMatch(/^b@d {2}Expected `trackingNumber` .*\n$/);
    },
  );

  it('a refused key → rejects, because every other number would fail too', async () => {
    const fake = createFakeTrackingService({ apiKeys: ['another-key'] });
    const { run } = setUp({ fake: { ...fake, apiKey: 'wrong' } });
    await expect(run(ONE, OTHER)).rejects.toMatchObject({ code: 'auth_invalid_api_key' });
    expect(fake.requests).toHaveLength(1);
  });

  it('--all → watches the trackers that are still tracked', async () => {
    const { fake, runAll, output, terminal } = setUp();
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    for (const trackingNumber of [ONE, OTHER]) await client.trackers.create({ trackingNumber });
    fake.shipment(OTHER).stopTracking();
    fake.shipment(ONE).deliver();
    const exitCode = runAll();
    await vi.advanceTimersByTimeAsync(1000);
    fake.shipment(ONE).stopTracking();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(output.stdout).not.toContain(OTHER);
    expect(output.stdout).toContain(`${ONE}  delivered, and no longer tracked`);
    expect(terminal.signal.aborted).toBe(false);
  });

  it('--all without tracked trackers → a message, exit code 0', async () => {
    const { runAll, output } = setUp();
    expect(await runAll()).toBe(0);
    expect(output.stderr).toBe('This account has no trackers; `tracking-client track` creates one\n');
  });

  it('--json → one line for each event, oldest first; polls without new events and failures print no line', async () => {
    const { fake, run, lines, output } = setUp({ json: true });
    fake.shipment(ONE).addEvent({ status: 'Posted' }).deliver().stopTracking();
    const exitCode = run('b@d', ONE);
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(1);
    const trackerId = fake.trackers[0]?.trackerId;
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      { trackingNumber: ONE, trackerId, event: expect.objectContaining({ status: 'Posted' }) },
      { trackingNumber: ONE, trackerId, event: expect.objectContaining({ status: 'Delivered' }) },
    ]);
    expect(output.stderr).toMatch(/^b@d /);
  });

  it('a terminal → one table that is redrawn in place, with the time to the next poll', async () => {
    const { fake, run, output } = setUp({ isLive: true, intervalMs: 90_000 });
    fake.shipment(ONE).addEvent({ occurrenceDatetime: '2026-03-04', status: 'Posted' });
    const exitCode = run(ONE, OTHER);
    await vi.advanceTimersByTimeAsync(70_000);
    const frames = () => output.stdout.split('\r\u001b[4A\u001b[0J');
    expect(frames().at(-1)?.split('\n')).toEqual([
      '\u001b[?7lNumber         Status          Next poll  Last event',
      expect.stringMatching(/^RR123456785CN {2}in_transit {6}00:02:3\d {3}4 Mar Posted$/),
      expect.stringMatching(/^LA680658838NL {2}no results yet {2}00:02:0\d$/),
      '2 watched, 0 ended. Ctrl-C stops watching.\u001b[?7h',
      '',
    ]);
    for (const number of [ONE, OTHER]) fake.shipment(number).deliver().stopTracking();
    await vi.advanceTimersByTimeAsync(90_000);
    expect(await exitCode).toBe(0);
    expect(frames().at(-1)).toMatch(/^RR123456785CN {2}delivered +ended .* Delivered/m);
    expect(frames().at(-1)).toContain('\n2 watched, 2 ended.\u001b[?7h\n');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an undated event beside a dated event → the row shows the dated event with a short time', async () => {
    const { fake, run, output, interrupt } = setUp({ isLive: true });
    const occurrenceDatetime = '2026-02-19T16:33:00+08:00';
    fake.shipment(ONE).addEvent({ occurrenceDatetime, status: 'Departed from the sorting centre' });
    fake.shipment(ONE).addEvent({ occurrenceDatetime: '', status: 'Registered' });
    const exitCode = run(ONE).catch(() => 'interrupted');
    await vi.advanceTimersByTimeAsync(70_000);
    interrupt();
    expect(await exitCode).toBe('interrupted');
    const [, row = ''] = output.stdout.split('\u001b[0J').at(-1)?.split('\n') ?? [];
    expect(row).toMatch(
      /^RR123456785CN {2}in_transit {2}\S+ {3}19 Feb 16:33 Departed from the sorting centre$/,
    );
  });

  it('more trackers than lines on the screen → as many as fit, and how many are hidden', async () => {
    const { run, output, interrupt } = setUp({ isLive: true });
    const many = Array.from({ length: 30 }, (_, index) => `LP${String(index).padStart(9, '0')}CN`);
    const exitCode = run(...many).catch(() => 'interrupted');
    await vi.advanceTimersByTimeAsync(10_000);
    interrupt();
    await exitCode;
    const last = output.stdout.split('\u001b[0J').at(-1) ?? '';
    expect(last.split('\n').length).toBeLessThanOrEqual(12);
    expect(last).toContain('30 watched, 0 ended, 23 of them not shown');
  });

  it('a poll that fails → a warning, and the next poll follows', async () => {
    const { fake, run, output } = setUp({ intervalMs: 1000 });
    fake.shipment(ONE).deliver().stopTracking();
    fake.fail('trackers.results', { status: 500 });
    const exitCode = run(ONE);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await exitCode).toBe(0);
    expect(output.stderr).toMatch(/^A poll failed; the tracker will be polled again: .*\n$/);
  });
});

import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { connect, makeTerminal, parseFlags, runLine } from './make-terminal.ts';

const [ONE, OTHER] = ['RR123456785CN', 'LA680658838NL'];
const HOUR_MS = 3_600_000;
/** What the service can respond while there is no news. */
const NO_RESULTS = ['pending', 'parcel_not_found', 'empty'] as const;

/** Prepares `watch` of a fake service, with polls each hour. */
function setUp({ fake = createFakeTrackingService(), isLive = false } = {}) {
  connect(fake);
  const made = makeTerminal({ isLive });
  const watch = (...args: string[]) => run(['watch', '--interval', '1h', ...args], made.terminal);
  return { fake, watch, ...made };
}

/** The requests for results. */
const findPolls = ({ requests }: FakeTrackingService) =>
  requests.filter(({ path }) => path.endsWith('/results'));

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(2026, 2, 10) });
});
describe('watch', () => {
  it('a number until tracking ends → one line for each event, then a line for the end, exit code 0', async () => {
    const { fake, watch, lines } = setUp();
    fake.play(ONE, 'delivered');
    const exitCode = watch(ONE);
    await vi.advanceTimersByTimeAsync(80 * HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(lines()).toEqual([
      `${ONE}  no results yet`,
      expect.stringMatching(/^RR123456785CN {2}○ [ \d]{2} \w{3} \d\d:\d\d {6}Shipping label created · B/),
      expect.stringMatching(/Accepted at the post office/),
      `${ONE}  expected 14 Mar`,
      expect.stringMatching(/Left the country of origin/),
      expect.stringMatching(/Arrived in the country of destination/),
      `${ONE}  expected 13 Mar`,
      expect.stringMatching(/Out for delivery/),
      `${ONE}  expected 13 Mar 02:00 to 13 Mar 08:00`,
      expect.stringMatching(/^RR123456785CN {2}● [ \d]{2} \w{3} \d\d:\d\d UTC {2}Delivered/),
      `${ONE}  Delivered, and no longer tracked`,
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an estimate that changes once → printed twice, and with --json never', async () => {
    for (const flags of [[], ['--json']]) {
      const { fake, watch, lines } = setUp();
      const shipment = fake.shipment(ONE).addEvent({ occurrenceDatetime: '2026-03-09' });
      shipment.update({ delivery: { estimatedDeliveryDate: '2026-03-12' } });
      const exitCode = watch(ONE, ...flags);
      await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
      shipment.update({ delivery: { estimatedDeliveryDate: '2026-03-13' } }).addEvent();
      await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
      shipment.stopTracking();
      await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
      expect(await exitCode).toBe(0);
      const expected = flags.length > 0 ? [] : [`${ONE}  expected 12 Mar`, `${ONE}  expected 13 Mar`];
      expect(lines().filter((line) => /expect/.test(line))).toEqual(expected);
    }
  });

  it('a number that breaks a rule → the whole reason on stderr, the other numbers are watched, exit code 1', async () => {
    const { fake, watch, output } = setUp();
    fake.shipment(ONE).deliver().stopTracking();
    const exitCode = watch('b@d', ONE);
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(1);
    expect(output.stdout).toContain(`\n${ONE}  Delivered, and no longer tracked\n`);
    expect(output.stderr).toMatch(/^b@d {2}Expected `trackingNumber` .*\n$/);
  });

  it('a refused key → one error for all numbers, exit code 1', async () => {
    const fake = createFakeTrackingService({ apiKeys: ['another-key'] });
    const { watch, output } = setUp({ fake: { ...fake, apiKey: 'wrong' } });
    expect(await watch(ONE, OTHER)).toBe(1);
    expect(output.stderr).toMatch(/^tracking-client: .*auth_invalid_api_key.*\n$/);
    expect(fake.requests).toHaveLength(1);
  });

  it('--all → watches the trackers that are still tracked', async () => {
    const { fake, watch, output } = setUp();
    for (const number of [ONE, OTHER]) await runLine(`track ${number}`);
    fake.shipment(OTHER).stopTracking();
    fake.shipment(ONE).deliver();
    const exitCode = watch('--all');
    await vi.advanceTimersByTimeAsync(1000);
    fake.shipment(ONE).stopTracking();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(output.stdout).not.toContain(OTHER);
    expect(output.stdout).toContain(`${ONE}  Delivered, and no longer tracked`);
  });

  it('--all, a list whose trackers lack isTracked → watched until the results say that tracking has stopped', async () => {
    const { fake, watch, output } = setUp();
    await runLine(`track ${ONE}`);
    fake.shipment(ONE).deliver();
    vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
      const response = await fake.fetch(url, init);
      if (url.includes('/results')) return response;
      const text = (await response.text()).replaceAll('"isTracked":true', '"isTracked":null');
      return new Response(text, response);
    });
    const exitCode = watch('--all');
    await vi.advanceTimersByTimeAsync(1000);
    fake.shipment(ONE).stopTracking();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(output.stdout).toContain(`${ONE}  Delivered, and no longer tracked`);
  });

  it.each(NO_RESULTS)(
    'no results (%s) → ten polls one minute apart, then at the interval',
    async (noResults) => {
      const { fake, watch, lines, interrupt } = setUp({ fake: createFakeTrackingService({ noResults }) });
      const exitCode = watch(ONE);
      await vi.advanceTimersByTimeAsync(10 * 60_000 + 1000);
      expect(findPolls(fake)).toHaveLength(11);
      await vi.advanceTimersByTimeAsync(59 * 60_000);
      expect(findPolls(fake)).toHaveLength(11);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(findPolls(fake)).toHaveLength(12);
      expect(lines()).toEqual([`${ONE}  no results yet`]);
      interrupt();
      expect(await exitCode).toBe(130);
    },
  );

  it.each(NO_RESULTS)(
    'a number that is given up (%s) → a line that says so, exit code 0',
    async (noResults) => {
      const { fake, watch, lines } = setUp({ fake: createFakeTrackingService({ noResults }) });
      fake.play(ONE, 'never-found', { speed: Number.POSITIVE_INFINITY });
      const exitCode = watch(ONE);
      await vi.advanceTimersByTimeAsync(HOUR_MS);
      expect(await exitCode).toBe(0);
      expect(lines()).toEqual([`${ONE}  no results yet`, `${ONE}  no results, and no longer tracked`]);
    },
  );

  it('results after a minute → the next poll comes after the interval', async () => {
    const { fake, watch, interrupt } = setUp({ fake: createFakeTrackingService({ resultsDelayMs: 30_000 }) });
    fake.shipment(ONE).addEvent({});
    const exitCode = watch(ONE);
    await vi.advanceTimersByTimeAsync(60 * 60_000);
    expect(findPolls(fake)).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2 * 60_000);
    expect(findPolls(fake)).toHaveLength(3);
    interrupt();
    expect(await exitCode).toBe(130);
  });

  it('an interval below a minute, no results yet → polls at the interval', async () => {
    const { fake, watch, interrupt } = setUp();
    const exitCode = watch(ONE, '--interval', '30s');
    await vi.advanceTimersByTimeAsync(61_000);
    expect(findPolls(fake)).toHaveLength(3);
    interrupt();
    expect(await exitCode).toBe(130);
  });

  it('--all without tracked trackers → a message, exit code 0', async () => {
    const { watch, output } = setUp();
    expect(await watch('--all')).toBe(0);
    expect(output.stderr).toBe(
      'No shipment of this account is being tracked; `npx --no-install tracking-client list` shows all trackers\n',
    );
  });

  it('--json → one line for each event, oldest first; polls without new events and failures print no line', async () => {
    const { fake, watch, lines, output } = setUp();
    fake.shipment(ONE).addEvent({ status: 'Posted' }).deliver().stopTracking();
    const exitCode = watch('b@d', ONE, '--json');
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(1);
    const trackerId = fake.trackers[0]?.trackerId;
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      { trackingNumber: ONE, trackerId, event: expect.objectContaining({ status: 'Posted' }) },
      { trackingNumber: ONE, trackerId, event: expect.objectContaining({ status: 'Delivered' }) },
    ]);
    expect(output.stderr).toMatch(/^b@d /);
  });

  it('a terminal → the same lines above one status line, which stays the last line', async () => {
    const { fake, watch, output } = setUp({ isLive: true });
    fake.shipment(ONE).addEvent({ occurrenceDatetime: '2026-03-04', status: 'Posted' });
    const exitCode = watch(ONE, OTHER);
    await vi.advanceTimersByTimeAsync(70_000);
    /** What stands on the screen: going up and clearing removes the line before. */
    const screen = () => {
      const parts = output.stdout.split('\r\u001b[1A\u001b[0J');
      const last = parts.pop() ?? '';
      return (parts.map((part) => part.replace(/[^\n]*\n$/, '')).join('') + last).split('\n');
    };
    const status = (text: string) => expect.stringMatching(new RegExp(`^\\S+2 watched, ${text}\\S+$`));
    expect(screen()).toEqual([
      `${ONE}  no results yet`,
      `${OTHER}  no results yet`,
      `${ONE}  ○  4 Mar            Posted`,
      status('0 ended; last poll [\\d:]+. Ctrl-C stops watching.'),
      '',
    ]);
    for (const number of [ONE, OTHER]) fake.shipment(number).deliver().stopTracking();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(screen().at(-3)).toBe(`${ONE}  Delivered, and no longer tracked`);
    expect(screen().at(-2)).toEqual(status('2 ended; last poll [\\d:]+.'));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('polls that are late → a warning that names only the flag of the command', async () => {
    const { watch, output, interrupt } = setUp({ fake: createFakeTrackingService({ latencyMs: 5000 }) });
    const numbers = Array.from({ length: 20 }, (_, index) => `RR1234567${10 + index}CN`);
    const exitCode = watch('--interval', '1s', ...numbers);
    await vi.advanceTimersByTimeAsync(300_000);
    interrupt();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    await exitCode;
    expect(output.stderr).toMatch(/^RR\w+ {2}Polls start more than one interval late; raise `--interval`$/m);
  });

  it('a service that is away for a day, two numbers → one line that says so, and the events after it', async () => {
    const { fake, watch, lines, output } = setUp();
    for (const number of [ONE, OTHER]) fake.shipment(number).addEvent({ status: 'Posted' });
    const exitCode = watch(ONE, OTHER);
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    const outage = fake.fail('trackers.results', { status: 503, times: Number.POSITIVE_INFINITY });
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);
    expect(output.stderr).toMatch(
      /^The service is not available; the next polls try again: GET .* responded with 503.*\n$/,
    );
    outage.cancel();
    for (const number of [ONE, OTHER]) fake.shipment(number).deliver().stopTracking();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(lines()).toContain(`${ONE}  Delivered, and no longer tracked`);
    expect(lines()).toContain(`${OTHER}  Delivered, and no longer tracked`);
  });

  it('a key that is refused at a later poll → a line with the number, and the next poll follows', async () => {
    const { fake, watch, output } = setUp();
    fake.shipment(ONE).addEvent({ status: 'Posted' });
    const exitCode = watch(ONE);
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    fake.fail('trackers.results', { status: 401, code: 'auth_invalid_api_key', times: 1 });
    fake.shipment(ONE).deliver().stopTracking();
    await vi.advanceTimersByTimeAsync(2 * HOUR_MS);
    expect(await exitCode).toBe(0);
    expect(output.stderr).toContain(`${ONE}  A poll failed; the tracker will be polled again: `);
  });
});

describe('--interval', () => {
  it.each([
    ['1', 1_000],
    ['1s', 1_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['1440m', 86_400_000],
    ['86400s', 86_400_000],
  ])('%s → %i ms', (text, expected) => {
    expect(parseFlags<{ interval: number }>(['watch', ONE, '--interval', text]).interval).toBe(expected);
  });

  it.each(['0', '0s', '25h', '1441m', '86401s', '1d', '1.5h', '-1s', '1 h', '1H', ''])(
    '%j → one line that names the flag, exit code 2',
    async (text) => {
      const { terminal, output } = makeTerminal();
      expect(await run(['watch', ONE, `--interval=${text}`], terminal)).toBe(2);
      expect(output.stderr).toMatch(/^tracking-client: Expected `--interval` to be a time from 1s to 24h, /);
    },
  );
});

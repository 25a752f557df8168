import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { track } from '../../src/cli/track.ts';
import { makeTerminal } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';

function setUp() {
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const { terminal, output, lines } = makeTerminal();
  const run = (json = false) => track(client, { trackingNumber: NUMBER }, { json, terminal });
  return { fake, run, output, lines };
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(2026, 2, 10), toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('track', () => {
  it('a shipment with events → its milestone and its timeline, oldest first, exit code 0', async () => {
    const { fake, run, lines } = setUp();
    fake
      .shipment(NUMBER)
      .addEvent({ occurrenceDatetime: '2026-03-04T17:12:57+08:00', location: 'Beijing' })
      .deliver({ occurrenceDatetime: '2026-03-09' });
    expect(await run()).toBe(0);
    expect(lines()).toEqual([
      `${NUMBER}  delivered`,
      '  ○  4 Mar 17:12  In transit · Beijing',
      '  ●  9 Mar        Delivered',
    ]);
  });

  it('an expected date → told', async () => {
    const { fake, run, lines } = setUp();
    fake
      .shipment(NUMBER)
      .addEvent()
      .update({ delivery: { estimatedDeliveryDate: '2026-03-09' } });
    await run();
    expect(lines()[1]).toBe('  expected 9 Mar');
  });

  it('nothing known yet → says how to wait for it, exit code 3', async () => {
    const { run, output } = setUp();
    expect(await run()).toBe(3);
    expect(output).toEqual({
      stdout: '',
      stderr: `Nothing is known of ${NUMBER} yet. To wait for it: tracking-client watch ${NUMBER}\n`,
    });
  });

  it('--json → the tracking in one line', async () => {
    const { fake, run, lines } = setUp();
    fake.shipment(NUMBER).deliver();
    expect(await run(true)).toBe(0);
    expect(lines()).toHaveLength(1);
    expect(JSON.parse(lines()[0] ?? '')).toMatchObject({ shipment: { statusMilestone: 'delivered' } });
  });

  it('a courier who writes control characters → they reach no terminal', async () => {
    const { fake, run, output } = setUp();
    fake.shipment(NUMBER).addEvent({ status: 'at\u001b[2J home\r\nnow', location: '\u0007Ulm' });
    await run();
    expect(output.stdout).toContain(' at home now · Ulm\n');
  });
});

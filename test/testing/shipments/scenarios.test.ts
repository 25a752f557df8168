import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { parseOccurrenceDatetime } from '../../../src/events/occurrence-datetime.ts';
import { formatTime, PLAY_NAMES, scenarios } from '../../../src/testing/shipments/scenarios.ts';
import { DAY_MS, makeFake, NUMBER, START_MS } from '../make-fake.ts';

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };
const HOUR_MS = 3_600_000;

describe('fake.play', () => {
  it.each([
    ['delivered', 'delivered'],
    ['exception', 'exception'],
    ['customs', 'delivered'],
  ] as const)('%s at once → the last event says %s, and tracking stops', (name, milestone) => {
    const { fake } = makeFake();
    const shipment = fake.play(NUMBER, name, AT_ONCE);
    expect(shipment.events.at(-1)).toMatchObject({ statusMilestone: milestone });
    expect(shipment.isTracked).toBe(false);
  });

  it('customs → held and cleared on the way', () => {
    const { fake } = makeFake();
    const codes = fake.play(NUMBER, 'customs', AT_ONCE).events.map((event) => event.statusCode);
    expect(codes).toEqual(
      expect.arrayContaining(['customs_received', 'customs_exception', 'customs_cleared']),
    );
  });

  it('never-found → no event, and tracking stops after 30 days', () => {
    const { fake, advance } = makeFake();
    const shipment = fake.play(NUMBER, 'never-found');
    advance(30 * DAY_MS - 1);
    expect(shipment.isTracked).toBe(true);
    advance(1);
    expect([shipment.isTracked, shipment.events]).toEqual([false, []]);
  });

  it('no speed → in real time on the clock of the fake', () => {
    const { fake, advance } = makeFake();
    const shipment = fake.play(NUMBER, 'delivered');
    expect(shipment.events).toHaveLength(1);
    advance(5 * HOUR_MS);
    expect(shipment.events).toHaveLength(2);
  });

  it('speed 60 → an hour of the story each minute', () => {
    const { fake, advance } = makeFake();
    const shipment = fake.play(NUMBER, 'delivered', { speed: 60 });
    advance(5 * 60_000 - 1);
    expect(shipment.events).toHaveLength(1);
    advance(1);
    expect(shipment.events).toHaveLength(2);
  });

  it('the speed of the options → used when the play has none', () => {
    const { fake } = makeFake(AT_ONCE);
    expect(fake.play(NUMBER, 'delivered').isTracked).toBe(false);
  });

  it('a play under way → its webhooks are queued as its events are discovered', async () => {
    const { fake, create, advance } = makeFake();
    fake.play(NUMBER, 'delivered');
    await create();
    advance(4 * DAY_MS);
    const counts = fake.webhooks.pending.map(({ item }) => ('events' in item ? item.events.length : 0));
    expect(counts).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it.each([1, 60, 1e6, Number.POSITIVE_INFINITY])(
    'speed %d → no event lies in the future when it is seen',
    (speed) => {
      const { fake, clock, advance } = makeFake();
      const shipment = fake.play(NUMBER, 'exception', { speed });
      const seen = new Map<string, number>();
      for (let step = 0; step < 50; step += 1) {
        for (const { occurrenceDatetime } of shipment.events)
          if (occurrenceDatetime?.endsWith('Z') && !seen.has(occurrenceDatetime))
            seen.set(occurrenceDatetime, clock.nowMs);
        advance((6 * DAY_MS) / speed / 50);
      }
      expect(seen.size).toBe(3);
      for (const [occurred, seenAtMs] of seen) expect(Date.parse(occurred)).toBeLessThanOrEqual(seenAtMs);
    },
  );

  it('a delivered play → its times are written in every style couriers use', () => {
    const { fake } = makeFake();
    const times = fake
      .play(NUMBER, 'delivered', AT_ONCE)
      .events.map((event) => event.occurrenceDatetime ?? '');
    const kinds = new Set(times.map((time) => parseOccurrenceDatetime(time)?.kind));
    expect([...kinds].sort()).toEqual(['date', 'local', 'offset', 'utc']);
  });

  it('the play of the options → starts for each new number', async () => {
    const { fake, create } = makeFake({ play: 'delivered' });
    await create();
    expect(fake.shipment(NUMBER).events).toHaveLength(1);
  });

  it.each(PLAY_NAMES)(
    '%s, begun at any hour of the day → results tell the story in its order',
    async (name) => {
      for (let hour = 0; hour < 24; hour += 1) {
        const { fake, createId, call, advance } = makeFake(AT_ONCE);
        const id = await createId();
        advance(hour * HOUR_MS);
        fake.play(NUMBER, name);
        const { body } = await call('GET', `/trackers/${id}/results`);
        const orders = body.data?.trackings[0].events.map(({ order }) => order) ?? [];
        expect(orders).toEqual([...orders.keys()].reverse());
      }
    },
  );

  it('never-found of the options, at once → the tracker is given up where its first results would come', async () => {
    const { fake, create, advance } = makeFake({ play: 'never-found', ...AT_ONCE });
    await create();
    expect(fake.trackers).toMatchObject([{ isTracked: true }]);
    advance(2000);
    expect(fake.trackers).toMatchObject([{ isTracked: false }]);
  });

  it('two plays of the options and three new numbers → the plays take turns', async () => {
    const { fake, create } = makeFake({ play: ['exception', 'never-found'], ...AT_ONCE });
    const numbers = [NUMBER, 'LA680658838NL', 'LA680658839NL'];
    for (const trackingNumber of numbers) await create({ trackingNumber });
    const milestones = numbers.map((number) => fake.shipment(number).events.at(-1)?.statusMilestone);
    expect(milestones).toEqual(['exception', undefined, 'exception']);
  });

  it('the play of the options, and a shipment the test has touched → left alone', async () => {
    const { fake, create } = makeFake({ play: 'delivered' });
    fake.shipment(NUMBER).update({});
    await create();
    expect(fake.shipment(NUMBER).events).toEqual([]);
  });

  it.each([0, 0.5, -1, Number.NaN])('speed %d → ConfigurationError', (speed) => {
    expect(() => makeFake().fake.play(NUMBER, 'delivered', { speed })).toThrow(ConfigurationError);
  });

  it('an unknown play → ConfigurationError', () => {
    const { fake } = makeFake();
    // What a caller without types could pass.
    const play = fake.play as (trackingNumber: string, name: string) => unknown;
    expect(() => play(NUMBER, 'hamlet')).toThrow(ConfigurationError);
  });
});

describe('the scenarios', () => {
  it.each(PLAY_NAMES)('%s → in order of time, and its end stops tracking', (name) => {
    const steps = scenarios[name];
    const times = steps.map((step) => step.afterMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(steps.at(-1)?.event).toBe('stop');
  });
});

describe('formatTime', () => {
  it.each([
    ['utc', '2026-03-10T12:00:00Z'],
    ['local', '2026-03-10T12:00:00'],
    ['date', '2026-03-10'],
    [{ offsetHours: 8 }, '2026-03-10T20:00:00+08:00'],
    [{ offsetHours: -8 }, '2026-03-10T04:00:00-08:00'],
  ] as const)('%j → %s', (style, text) => {
    expect(formatTime(START_MS, style)).toBe(text);
  });
});

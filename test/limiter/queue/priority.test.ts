import { describe, expect, test } from 'vitest';
import { settled } from '../../support/settled.ts';
import { type Call, countGranted, makeLimiter } from '../make-limiter.ts';

const background = { priority: 'background' } as const;

describe('priorities', () => {
  test('an interactive call after two background calls → granted first', async () => {
    const { acquire, respond, clock } = makeLimiter({ limit: 1 });
    await respond(1, {});
    const later = [acquire(background), acquire(background)];
    const urgent = acquire();
    await clock.advance(1_010);
    expect(urgent.state).toBe('granted');
    expect(countGranted(later)).toBe(0);
  });

  test('an endless queue of interactive calls → a waiting background call gets the twentieth token', async () => {
    const { acquire } = makeLimiter({ limit: 1 });
    const first = acquire();
    await settled();
    const urgent = Array.from({ length: 60 }, () => acquire());
    const patient = [acquire(background), acquire(background), acquire(background)];
    const order = await grantOneByOne(first, [...urgent, ...patient]);
    const places = patient.map((call) => order.indexOf(call) + 1);
    expect(places).toEqual([20, 40, 60]);
  });
});

describe('the token that is reserved for interactive calls', () => {
  test.each([
    [10, 9],
    [9, 9],
  ])('limit %d → background calls get %d tokens', async (limit, granted) => {
    const { acquire } = makeLimiter({ limits: { 'trackers.createBulk': limit } });
    const calls = Array.from({ length: 20 }, () => acquire(background));
    await settled();
    expect(countGranted(calls)).toBe(granted);
  });

  test('many interactive calls in a queue without background calls → it stays reserved afterwards', async () => {
    const { acquire } = makeLimiter({ limit: 10 });
    const urgent = Array.from({ length: 40 }, () => acquire());
    for (let round = 0; round < 4; round += 1) {
      await settled();
      for (const { permit } of urgent) permit?.cancel();
    }
    expect(countGranted(urgent)).toBe(40);
    const calls = Array.from({ length: 20 }, () => acquire(background));
    await settled();
    expect(countGranted(calls)).toBe(9);
    const last = acquire();
    await settled();
    expect(last.state).toBe('granted');
  });
});

/** Frees one token at a time, and returns the calls in the order in which they got it. */
async function grantOneByOne(first: Call, calls: readonly Call[]): Promise<Call[]> {
  const order: Call[] = [];
  let holder: Call | undefined = first;
  while (holder) {
    holder.permit?.cancel();
    await settled();
    holder = calls.find((call) => call.state === 'granted' && !order.includes(call));
    if (holder) order.push(holder);
  }
  return order;
}

import { describe, expect, test } from 'vitest';
import { makeLimiter } from './make-limiter.ts';
import { settled } from './manual-clock.ts';

const refused = { status: 429, retryAfterMs: 0 } as const;

describe('after a 429', () => {
  test('at a limit of 10 → grants are spaced for nine tenths of the limit', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(2_000);
    expect(await grantTimes(4)).toEqual([0, 112, 224, 336]);
  });

  test('no 429 → grants come in one burst', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1);
    await clock.advance(2_000);
    expect(await grantTimes(4)).toEqual([0, 0, 0, 0]);
  });

  test('several in one burst → one cut', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(5, refused);
    await clock.advance(2_000);
    expect(await grantTimes(2)).toEqual([0, 112]);
  });

  test('again, for a request sent before the cut → no second cut', async () => {
    const { clock, sent, grantTimes } = makePaced();
    const [first, second] = await sent(2);
    await clock.advance(100);
    first?.report(refused);
    await clock.advance(100);
    second?.report(refused);
    await clock.advance(2_000);
    expect(await grantTimes(2)).toEqual([0, 112]);
  });

  test('again, for a request sent after the cut → cut by another tenth', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(2_000);
    await answered(1, refused);
    await clock.advance(2_000);
    expect(await grantTimes(2)).toEqual([0, 124]);
  });

  test('29 s later → still the same spacing', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(29_000);
    expect(await grantTimes(2)).toEqual([0, 112]);
  });

  test('40 s later → 5% of the limit are back', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(40_000);
    expect(await grantTimes(2)).toEqual([0, 106]);
  });

  test('again after 40 s, when 5% are back → cut by a tenth of what had been reached', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(40_000);
    await answered(1, refused);
    await clock.advance(2_000);
    expect(await grantTimes(2)).toEqual([0, 117]);
  });

  test('50 s later → the full limit, in one burst', async () => {
    const { clock, answered, grantTimes } = makePaced();
    await answered(1, refused);
    await clock.advance(50_001);
    expect(await grantTimes(3)).toEqual([0, 0, 0]);
  });

  test('a hundred times in a row → never slower than a tenth of the limit', async () => {
    const { clock, answered, grantTimes } = makePaced();
    for (let time = 0; time < 100; time += 1) {
      await answered(1, refused);
      await clock.advance(2_000);
    }
    expect(await grantTimes(2)).toEqual([0, 1_000]);
  });

  test('of one endpoint → the others keep their pace', async () => {
    const { answered, grantTimes } = makePaced();
    const other = { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: 'couriers.list' };
    await answered(1, refused, { bucket: other, limit: 10 });
    expect(await grantTimes(3)).toEqual([0, 0, 0]);
  });
});

/** A limiter with a limit of 10, and a way to see when calls that ask now are granted. */
function makePaced() {
  const made = makeLimiter();
  async function grantTimes(count: number): Promise<number[]> {
    const startedAt = made.clock.now();
    const calls = Array.from({ length: count }, () => made.acquire({ limit: 10 }));
    await settled();
    await made.clock.advance(5_000);
    return calls.map((call) => (call.doneAt ?? Number.NaN) - startedAt);
  }
  return {
    clock: made.clock,
    grantTimes,
    sent: (count: number) => made.sent(count, { limit: 10 }),
    answered: (
      count: number,
      feedback?: Parameters<typeof made.answered>[1],
      overrides?: Parameters<typeof made.answered>[2],
    ) => made.answered(count, feedback, { limit: 10, ...overrides }),
  };
}

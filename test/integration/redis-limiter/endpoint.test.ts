import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LongPauseError } from '../../../src/limiter/limiter.ts';
import { describeWithRedis } from '../services.ts';
import { fleetsOn, take } from './fleets.ts';

await describeWithRedis('what one process learns of an endpoint', (url) => {
  const { admin, makeFleet } = fleetsOn(url);

  test('a 429 in one process → the other waits as long as the service asked for', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const [permit] = await take(one, asked(), 1);
    permit?.report({ status: 429, retryAfterMs: 1_500 });
    const pausedAt = performance.now();
    await sleep(50);
    await other.acquire(asked());
    expect(performance.now() - pausedAt).toBeGreaterThanOrEqual(1_480);
  });

  test('a limit announced to one process → holds for the other, up to its maxLimit', async () => {
    const { join, asked, bucket } = makeFleet();
    const [one, other, careful] = [join(), join(), join()];
    const [permit] = await take(one, asked(), 1);
    permit?.report({ status: 200, announcedLimit: 8 });
    await sleep(50);
    await other.acquire(asked());
    await careful.acquire(asked({ maxLimit: 5 }));
    expect(other.snapshot(bucket)?.limit).toBe(8);
    expect(careful.snapshot(bucket)?.limit).toBe(5);
  });

  test('two announcements that overtake each other → the one of the later request holds', async () => {
    const { join, asked, bucket } = makeFleet();
    const [one, other] = [join(), join()];
    const [early] = await take(one, asked(), 1);
    await sleep(20);
    const [late] = await take(other, asked(), 1);
    late?.report({ status: 200, announcedLimit: 5 });
    await sleep(50);
    early?.report({ status: 200, announcedLimit: 9 });
    await sleep(50);
    const third = join();
    await third.acquire(asked());
    expect(third.snapshot(bucket)?.limit).toBe(5);
  });

  test('a pause longer than calls wait → they reject in every process', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const permits = await take(one, asked(), 3);
    const waiting = other.acquire(asked({ maxPauseMs: 60_000 })).catch((error: unknown) => error);
    await sleep(50);
    permits[0]?.report({ status: 429, retryAfterMs: 90_000 });
    await expect(one.acquire(asked({ maxPauseMs: 60_000 }))).rejects.toBeInstanceOf(LongPauseError);
    // It asks Redis when its turn comes, and is told.
    expect(await waiting).toBeInstanceOf(LongPauseError);
    await expect(join().acquire(asked({ maxPauseMs: 60_000 }))).rejects.toBeInstanceOf(LongPauseError);
  });

  test('a pause of a thousand years in Redis → one hour, and gone from Redis soon after', async () => {
    const { join, asked, bucket, state } = makeFleet();
    await admin.hset(state, 'paused_until', 1e14);
    const limiter = join();
    await expect(limiter.acquire(asked({ maxPauseMs: 0 }))).rejects.toBeInstanceOf(LongPauseError);
    const endsInMs = Number(limiter.snapshot(bucket)?.pausedUntil) - Date.now();
    expect(endsInMs).toBeGreaterThan(3_590_000);
    expect(endsInMs).toBeLessThanOrEqual(3_600_000);
    expect(await admin.pttl(state)).toBeLessThanOrEqual(2 * 3_600_000);
  });

  test('what Redis knows of an endpoint → kept through an hour without a call', async () => {
    const { join, asked, leases, state } = makeFleet();
    await join().acquire(asked());
    for (const key of [leases, state]) expect(await admin.pttl(key)).toBeGreaterThan(3_590_000);
  });

  test('a limit in Redis that no service announces for a second → not believed', async () => {
    const { join, asked, bucket, state } = makeFleet();
    await admin.hset(state, 'announced', 1_000_000, 'announced_for', 0);
    const limiter = join();
    await limiter.acquire(asked());
    expect(limiter.snapshot(bucket)?.limit).toBe(3);
  });

  test('a clock of Redis that is set back a minute → the next call waits no longer than usual', async () => {
    const { join, asked, leases, state } = makeFleet();
    const [permit] = await take(join(), asked(), 3);
    permit?.report({ status: 429, retryAfterMs: 0 });
    await sleep(50);
    // What stands there was written on a clock that was a minute ahead.
    for (const member of await admin.zrange(leases, '0', '-1')) await admin.zincrby(leases, 60_000, member);
    for (const name of ['seen_at', 'last_grant_at', 'cut_at']) await admin.hincrby(state, name, 60_000);
    const [startedAt, other] = [performance.now(), join()];
    await take(other, asked(), 3);
    const waitedMs = performance.now() - startedAt;
    expect(waitedMs).toBeGreaterThan(1_000);
    expect(waitedMs).toBeLessThan(5_000);
  });
});

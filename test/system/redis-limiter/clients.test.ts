import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { bundled } from '../../../scripts/support/bundled.ts';
import { REDIS_CLIENTS } from '../../integration/redis-clients.ts';
import { fleetsOn, take } from '../../integration/redis-limiter/fleets.ts';
import { describeWithRedis } from '../../integration/services.ts';

await describeWithRedis('RedisLimiter with the clients of Redis', (url) => {
  const { admin, keyPrefix, makeFleet } = fleetsOn(url);

  test.each(REDIS_CLIENTS)('%s → shares tokens with the other clients', async (_title, connect) => {
    const { redis, close } = await connect(url);
    onTestFinished(async () => void (await close()));
    const { join, toAcquire, keys } = makeFleet();
    const [a, b] = [join(), join({ redis })];
    await take(b, toAcquire(), 2);
    const [permit] = await take(a, toAcquire(), 1);
    expect(permit?.tokensLeft).toBe(0);
    expect(await admin.zcard(keys.tokens)).toBe(3);
  });

  test('a program with no more work → ends by itself', async () => {
    const program = await bundled('test/system/redis-limiter/program.ts');
    const input = [program, url, keyPrefix];
    const { stdout } = await promisify(execFile)(process.execPath, input, { timeout: 25_000 });
    expect(stdout.trim()).toBe('end of program');
  });
});

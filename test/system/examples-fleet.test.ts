import { expect, it } from 'vitest';
import { describeWithRedis } from '../integration/services.ts';
import { runExample } from './run-example.ts';

/** The command of the documents; the supervisor starts the other programs of its folder from their sources. */
const SUPERVISOR = ['--import', 'tsx', 'examples/fleet/supervisor.ts'];

await describeWithRedis('the example of several processes', (url) => {
  it('run without a key → all trackers imported, no 429 unless a request was slow, every event handled once', {
    timeout: 60_000,
  }, async () => {
    const { code, stdout, stderr } = await runExample(SUPERVISOR, { REDIS_URL: url });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const [, requests, refused] =
      /in sum: +600 trackers, (\d+) requests, .*, (\d+) times 429/.exec(stdout) ?? [];
    // A busy machine may delay a request for longer than its token is held, or Redis for longer than a command may take.
    const [, slow = 0] = /(\d+) of the requests took more than half a second/.exec(stdout) ?? [];
    const hasLostRedis = stderr.includes('The rate limiter cannot use Redis');
    expect(Number(requests)).toBe(12 + Number(refused));
    if (!hasLostRedis) expect(Number(refused)).toBeLessThanOrEqual(Number(slow));
    const [, delivered, handled] = /(\d+) events were delivered: (\d+) handled/.exec(stdout) ?? [];
    expect(Number(handled)).toBeGreaterThan(0);
    expect(Number(delivered)).toBe(3 * Number(handled));
  });
});

it('the example of several processes without Redis → one line with the reason, exit code 0', async () => {
  const { code, stdout } = await runExample(SUPERVISOR, { REDIS_URL: 'redis://127.0.0.1:1', CI: '' });
  expect(code).toBe(0);
  expect(stdout.trim()).toBe('No Redis answers at 127.0.0.1:1; set REDIS_URL to run this example.');
});

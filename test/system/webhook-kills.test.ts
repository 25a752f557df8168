import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import { ownKeys } from '../integration/redis-clients.ts';
import { describeWithRedis } from '../integration/services.ts';
import type { KillerConfig, KillerReport } from './receivers/killer.ts';

const LEASE_MS = 500;
const MAX_ATTEMPTS = 3;
const IDS = Array.from({ length: 20 }, (_, index) => `e${101 + index}`);

await describeWithRedis('a callback that kills its process with SIGKILL', (url) => {
  const { keyPrefix } = ownKeys(url);

  /** Delivers 20 events to a process of its own, once no lease is left; returns its report, or the signal that killed it. */
  async function deliver(failingId?: string): Promise<KillerReport | string> {
    await sleep(LEASE_MS);
    const body = { trackerId: 't1', events: IDS.map((eventId) => ({ eventId })) };
    const limits = { leaseMs: LEASE_MS, maxAttempts: MAX_ATTEMPTS };
    const shared = { serviceUrl: url, keyPrefix, ...limits, body, fatalId: 'e101' };
    const config: KillerConfig = { ...shared, ...(failingId !== undefined && { failingId }) };
    const child = fork(await bundled('test/system/receivers/killer.ts'), [JSON.stringify(config)]);
    let report: KillerReport | undefined;
    // The process sends one message, a `KillerReport`.
    child.on('message', (message) => {
      report = message as KillerReport;
    });
    const [code, signal] = await once(child, 'exit');
    return report ?? signal ?? `exit code ${code}`;
  }

  test('event 1 of 20 kills as many processes as attempts are allowed → dead-lettered; event 2, which then fails once, is not', {
    timeout: 120_000,
  }, async () => {
    for (let kills = 0; kills < MAX_ATTEMPTS; kills += 1) expect(await deliver()).toBe('SIGKILL');
    expect(await deliver('e102')).toEqual({
      handled: IDS.slice(2),
      deadLettered: ['e101'],
      outcome: 'failed',
    });
    expect(await deliver()).toEqual({ handled: ['e102'], deadLettered: [], outcome: 'done' });
  });
});

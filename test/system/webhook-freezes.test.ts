import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import { ownKeys } from '../integration/redis-clients.ts';
import { describeWithRedis } from '../integration/services.ts';
import type { FreezableConfig, FreezableMessage } from './receivers/freezable.ts';

const LEASE_MS = 2_500;
const SECRET = 'whsec-freezes';

await describeWithRedis('a receiver that is frozen with SIGSTOP while it handles an event', (url) => {
  const { keyPrefix } = ownKeys(url);
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  async function start() {
    const config: FreezableConfig = { serviceUrl: url, keyPrefix, leaseMs: LEASE_MS, secret: SECRET };
    const child = fork(await bundled('test/system/receivers/freezable.ts'), [JSON.stringify(config)]);
    children.push(child);
    /** The next message; the process sends only messages of this type. */
    const next = async () => (await once(child, 'message'))[0] as FreezableMessage;
    const listening = await next();
    const target = 'port' in listening ? `http://127.0.0.1:${listening.port}/` : '';
    const deliver = async (eventId: string) => {
      const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ trackerId: 't1', events: [{ eventId }] });
      return (await fetch(target, { method: 'POST', headers, body })).status;
    };
    return { child, next, deliver };
  }

  test('for longer than its lease → another receiver handles the event; the signal of the frozen callback aborts', async () => {
    const [frozen, other] = [await start(), await start()];
    const eventId = randomUUID();
    const began = frozen.next();
    const first = frozen.deliver(eventId);
    await began;
    frozen.child.kill('SIGSTOP');
    const takenOver = other.next();
    const second = other.deliver(eventId);
    expect(await takenOver).toEqual({ began: 2 });
    other.child.send('end');
    expect(await second).toBe(200);
    const ended = frozen.next();
    frozen.child.kill('SIGCONT');
    expect(await ended).toEqual({ ended: 'aborted' });
    await first;
    expect(await frozen.deliver(eventId)).toBe(200);
  });
});

import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { IncomingBody } from '../../src/webhooks/incoming-body.ts';

test('a reader that cancels with more to come → the rest flows by, and nothing is put into the closed stream', async () => {
  const incoming = new IncomingMessage(new Socket());
  const reader = new IncomingBody(incoming).stream().getReader();
  incoming.push('first');
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('first');
  await reader.cancel();
  incoming.push('second');
  incoming.push(null);
  await once(incoming, 'end');
  expect(await reader.read()).toEqual({ done: true, value: undefined });
});

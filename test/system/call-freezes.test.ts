import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';

const TIMEOUT_MS = 1_500;
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A service that responds when the test says so. */
async function startService() {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    waiting.push(response);
    server.emit('waiting');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => void server.close().closeAllConnections());
  return {
    baseUrl: `http://127.0.0.1:${port}/public/v1`,
    untilRequested: () => once(server, 'waiting'),
    respond: (body: unknown) => {
      for (const response of waiting.splice(0)) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(body));
      }
    },
  };
}

const RESULT = { tracker: { trackerId: 't' }, events: [], note: 'x'.repeat(2_000_000) };
const ITEM = {
  itemStatus: 'created',
  inputData: { trackingNumber: 'LA680658838NL' },
  tracker: { trackerId: 't', trackingNumber: 'LA680658838NL' },
};

test.each<[what: string, call: string, body: object, result: unknown]>([
  ['a paid search', 'search', { data: { trackings: [] } }, []],
  ['a paid search with a large body', 'search', { data: { trackings: [RESULT] } }, [RESULT]],
  ['a chunk of createMany', 'createMany', { status: 'success', data: [ITEM] }, ['created']],
])(
  '%s, whose response came while the process was stopped past timeoutMs → its result',
  async (_what, call, body, result) => {
    const service = await startService();
    const program = await bundled('test/system/calls/one-call.ts');
    const child = fork(program, [JSON.stringify({ baseUrl: service.baseUrl, call, timeoutMs: TIMEOUT_MS })]);
    children.push(child);
    const outcome = once(child, 'message');
    await service.untilRequested();
    child.kill('SIGSTOP');
    service.respond(body);
    await sleep(TIMEOUT_MS + 1_000);
    child.kill('SIGCONT');
    expect((await outcome)[0]).toEqual({ result });
  },
);

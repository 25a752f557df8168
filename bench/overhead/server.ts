/** Responds to every request with the same results, with 10 events for /10/… and 200 events for /200/… */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { buildEvent, buildTracking } from '../../src/testing/index.ts';

function buildResults(count: number): string {
  const event = buildEvent();
  const events = Array.from({ length: count }, (_, index) => ({ ...event, eventId: `event-${index}` }));
  return JSON.stringify({ data: { trackings: [buildTracking({ events })] } });
}

/** Starts the server in a process of its own. */
export async function forkServer(): Promise<{ readonly origin: string; stop(): void }> {
  const child = fork(fileURLToPath(import.meta.url), { execArgv: ['--import', 'tsx'] });
  // The process below sends one message, its port.
  const [port] = (await once(child, 'message')) as [number];
  return { origin: `http://127.0.0.1:${port}`, stop: () => child.disconnect() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const bodies = new Map([10, 200].map((count) => [String(count), buildResults(count)]));
  const server = createServer((request, response) => {
    const body = bodies.get(request.url?.split('/')[1] ?? '') ?? '{}';
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      // Nobody reaches this limit, so no call waits.
      'ratelimit-limit': '1000000',
      'ratelimit-remaining': '999999',
      'ratelimit-reset': '1',
      // This id does not contain the key. Otherwise the client would spend time on masking the key.
      'x-request-id': 'b1946ac9-2f6a-4e0b-9a5c-6d0c5b7e3f21',
    });
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address === 'object') process.send?.(address?.port);
  });
  process.on('disconnect', () => process.exit());
}

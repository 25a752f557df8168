import { createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { PermissionDeniedError } from '../../src/errors.ts';
import { API_KEY, catchRejection } from '../support/make-client.ts';
import { BASE_PATH, type Behaviour, respond } from '../support/scripted-server.ts';
import { stoppedClientFor, wireClient, wireClientFor } from '../support/wire-client.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('bodies', () => {
  const COURIERS = JSON.stringify({ data: { couriers: [{ courierCode: 'é'.repeat(2_000) }] } });

  test('gzip → read', async () => {
    const { client } = await wireClientFor((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(gzipSync(COURIERS));
    });
    expect((await client.couriers.list())[0]?.courierCode).toBe('é'.repeat(2_000));
  });

  test('a small gzip of a huge body → ResponseValidationError, no second request', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, ' '));
    const { server, client } = await wireClientFor(
      (response) => {
        const type = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
        response.writeHead(200, { ...type, 'content-length': String(bomb.length) });
        response.end(bomb);
      },
      { maxResponseBytes: 1_000_000, retry: {} },
    );
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ResponseValidationError',
      message: expect.stringContaining('more than 1000000 bytes'),
    });
    expect(server.requests).toHaveLength(1);
  });

  test.each<[what: string, behaviour: Behaviour]>([
    ['plain text that is declared as gzip', respond(200, COURIERS, { 'content-encoding': 'gzip' })],
    [
      'a chunked body without its end',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(COURIERS, () => response.socket?.destroy());
      },
    ],
  ])('%s → ConnectionError', async (_what, behaviour) => {
    const { client } = await wireClientFor(behaviour);
    expect(await catchRejection(client.couriers.list())).toMatchObject({ name: 'ConnectionError' });
  });

  test('a body that trickles in longer than timeoutMs → TimeoutError, because timeoutMs covers the whole response', async () => {
    const { client, untilHeaders } = await stoppedClientFor((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const trickle = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(trickle));
    });
    const rejection = catchRejection(client.couriers.list({ timeoutMs: 5_000 }));
    await untilHeaders();
    vi.advanceTimersByTime(5_000);
    expect(await rejection).toMatchObject({ name: 'TimeoutError', phase: 'body' });
  });

  test('early hints before the response → resolves to the response', async () => {
    const { client } = await wireClientFor((response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(COURIERS);
    });
    expect(await client.couriers.list()).toHaveLength(1);
  });
});

describe('an invalid header name', () => {
  const raw =
    (status: number, body: string): Behaviour =>
    (response) => {
      const head = `HTTP/1.1 ${status} OK\r\nconnection: close\r\nbad name: 1\r\nx-echo: ${API_KEY}\r\n`;
      response.socket?.end(
        `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    };

  test('an invalid header name in a success → withResponse resolves with the other headers', async () => {
    const { client } = await wireClientFor(raw(200, '{"data":[]}'));
    const { response } = await client.couriers.list().withResponse();
    expect([...response.headers.keys()]).toEqual(['connection', 'content-length', 'content-type', 'x-echo']);
  });

  test('an invalid header name in an error that echoes the key → the error of its status, without the key', async () => {
    const { client } = await wireClientFor(raw(403, '{"errors":[]}'));
    const error = await catchRejection(client.couriers.list());
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(inspect(error)).not.toContain(API_KEY);
  });
});

describe('servers that do not speak HTTP', () => {
  test('an SSH server → ConnectionError', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write('SSH-2.0-OpenSSH_9.6\r\n');
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    // `address()` is an object for a server that listens on a port.
    const { port } = server.address() as { port: number };
    const client = wireClient(`http://127.0.0.1:${port}${BASE_PATH}`);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
    });
  });
});

import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createFakeTrackingService, type FakeServer } from '../../../src/testing/index.ts';
import { settled } from '../../support/settled.ts';
import { itFailsAlike } from '../../testing/transport/failure-kinds.ts';

const headers = { authorization: 'Bearer key', 'content-type': 'application/json' };

describe('fake.listen', () => {
  const servers: FakeServer[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  async function start(options = {}) {
    const fake = createFakeTrackingService({ limits: false });
    const server = await fake.listen(options);
    servers.push(server);
    return { fake, server };
  }

  itFailsAlike(async () => {
    const { fake, server } = await start();
    return { fake, fetch: globalThis.fetch, baseUrl: server.url };
  });

  it('no port → a free one on loopback, with the path of the base URL', async () => {
    const { server } = await start();
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/public\/v1$/);
    expect((await fetch(`${server.url}/couriers`, { headers })).status).toBe(200);
  });

  it('an IPv6 address → a URL that works', async () => {
    const { server } = await start({ host: '::1' });
    expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+\//);
    expect((await fetch(`${server.url}/couriers`, { headers })).status).toBe(200);
  });

  it('a port in use → rejects with EADDRINUSE', async () => {
    const { fake, server } = await start();
    await expect(fake.listen({ port: server.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('the end of `await using` with a waiting connection → the connection and the server are closed', async () => {
    const { fake, server } = await start();
    fake.fail('*', { kind: 'timeout' });
    const pending = fetch(`${server.url}/couriers`, { headers }).then(
      () => 'response',
      () => 'ended',
    );
    while (fake.requests.length === 0) await settled();
    // `close` does the same.
    await server[Symbol.asyncDispose]();
    expect(await pending).toBe('ended');
    await expect(fetch(`${server.url}/couriers`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  it('a client that disconnects in mid-body → the server goes on', async () => {
    const { server } = await start();
    const socket = connect(server.port, '127.0.0.1');
    socket.write('POST /public/v1/trackers HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.destroy();
    expect((await fetch(`${server.url}/couriers`, { headers })).status).toBe(200);
  });
});

import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createFakeTrackingService, type FakeServer } from '../../../src/testing/index.ts';
import { settled } from '../../support/settled.ts';
import { itFailsAlike } from '../../testing/transports/failure-kinds.ts';

const headers = { authorization: 'Bearer key', 'content-type': 'application/json' };

describe('fake.listen', () => {
  const servers: FakeServer[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  async function start(options = {}, fakeOptions = {}) {
    const fake = createFakeTrackingService({ limits: false, ...fakeOptions });
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

  it.each([
    [
      'https://tracking.test/public/v1',
      ['/', '/health', '/health?from=ci', '/public/v1', '/public/v1/', '/public/v1/health'],
    ],
    ['https://tracking.test/', ['/', '/health']],
  ])(
    'a health check below the base URL %s → 200 without a key, and nothing is recorded',
    async (baseUrl, paths) => {
      const onRequest = vi.fn();
      const { fake, server } = await start({}, { baseUrl, apiKeys: ['right-key'], onRequest });
      fake.fail('*', { status: 503, times: Number.POSITIVE_INFINITY });
      for (const path of paths)
        for (const method of ['GET', 'HEAD']) {
          const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
          expect([path, method, response.status]).toEqual([path, method, 200]);
          expect(await response.text()).toBe(method === 'HEAD' ? '' : '{"status":"ok"}');
        }
      expect([fake.requests, onRequest.mock.calls]).toEqual([[], []]);
    },
  );

  it.each([
    ['POST', '/', 404],
    ['POST', '/health', 404],
    ['GET', '/v2/health', 404],
    ['GET', '/public', 404],
    ['GET', '/healthy', 404],
    ['GET', '/public/v1/couriers', 400],
  ])('%s %s without a key → %i', async (method, path, status) => {
    const { fake, server } = await start();
    expect((await fetch(`http://127.0.0.1:${server.port}${path}`, { method })).status).toBe(status);
    expect(fake.requests).toMatchObject([{ status }]);
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

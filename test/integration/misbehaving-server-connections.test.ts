import { afterEach, describe, expect, test, vi } from 'vitest';
import { catchRejection } from '../support/make-client.ts';
import {
  BASE_PATH,
  type Behaviour,
  breakOff,
  reset,
  respond,
  silence,
  stall,
} from '../support/scripted-server.ts';
import { settled } from '../support/settled.ts';
import { stoppedClientFor, wireClientFor } from '../support/wire-client.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('ids on the wire', () => {
  const notFound = respond(404, { errors: [{ code: 'tracker_not_found' }], data: null });

  test.each([
    ['a/b', 'a%2Fb'],
    ['a\r\nX-Evil: 1', 'a%0D%0AX-Evil%3A%201'],
    ['%2f', '%252f'],
    ['..;', '..%3B'],
  ])('get(%j) → one segment, %s', async (id, segment) => {
    const { client, server } = await wireClientFor(notFound);
    await catchRejection(client.trackers.get(id));
    expect(server.requests.map(({ url }) => url)).toEqual([`${BASE_PATH}/trackers/${segment}`]);
  });
});

describe('connections', () => {
  const couriers = respond(200, { data: { couriers: [] } });

  test('calls one after another → connections are kept alive and reused', async () => {
    const { client, server } = await wireClientFor(couriers);
    for (let call = 0; call < 10; call += 1) await client.couriers.list();
    // Node may keep a spare connection.
    expect(new Set(server.requests.map(({ connection }) => connection)).size).toBeLessThanOrEqual(2);
  });

  test('a connection that the server closed while it was idle → the next call works', async () => {
    const closing: Behaviour = (response) => {
      response.on('finish', () => response.socket?.end());
      couriers(response, { method: '', url: '', headers: {}, body: '', connection: 0 });
    };
    const { client, server } = await wireClientFor(closing, { retry: {} });
    for (let call = 0; call < 5; call += 1) expect(await client.couriers.list()).toEqual([]);
    expect(server.requests).toHaveLength(5);
  });

  test.each([
    ['a reset', reset],
    ['a break', breakOff],
  ])('%s → the next call works on a new connection', async (_what, bad) => {
    const { client, server } = await wireClientFor([bad, couriers]);
    await catchRejection(client.couriers.list());
    expect(await client.couriers.list()).toEqual([]);
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  describe.each([
    ['headers', silence],
    ['body', stall],
  ])('while waiting for the %s', (phase, bad) => {
    const begin = async () => {
      const { client, server, untilRequested, untilHeaders } = await stoppedClientFor(bad);
      const controller = new AbortController();
      const rejection = catchRejection(client.couriers.list({ signal: controller.signal, timeoutMs: 5_000 }));
      await (bad === stall ? untilHeaders() : untilRequested());
      const untilClosed = async () => {
        while (!server.closedConnections.has(1)) await settled();
      };
      return { rejection, controller, untilClosed };
    };

    test('a timeout → TimeoutError with this phase, the connection is closed', async () => {
      const { rejection, untilClosed } = await begin();
      vi.advanceTimersByTime(5_000);
      expect(await rejection).toMatchObject({ name: 'TimeoutError', phase, timeoutMs: 5_000 });
      await expect(untilClosed()).resolves.toBeUndefined();
    });

    test('an abort → rejects with its reason, the connection is closed', async () => {
      const { rejection, controller, untilClosed } = await begin();
      controller.abort('enough');
      expect(await rejection).toBe('enough');
      await expect(untilClosed()).resolves.toBeUndefined();
    });
  });
});

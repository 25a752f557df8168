import { expect, it } from 'vitest';
import type { FakeTrackingService } from '../../../src/testing/index.ts';
import { NUMBER } from '../make-fake.ts';

/** One way to reach a fake. */
export interface Way {
  readonly fake: FakeTrackingService;
  readonly fetch: (input: string, init?: RequestInit) => Promise<Response>;
  readonly baseUrl: string;
}

/** Every kind of failure must look alike to a caller, whichever way the request takes. */
export function itFailsAlike(makeWay: () => Way | Promise<Way>): void {
  const headers = { authorization: 'Bearer key' };
  const couriers = ({ fetch, baseUrl }: Way, signal?: AbortSignal) =>
    fetch(`${baseUrl}/couriers`, { headers, ...(signal === undefined ? {} : { signal }) });
  const create = ({ fetch, baseUrl }: Way) =>
    fetch(`${baseUrl}/trackers`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ trackingNumber: NUMBER }),
    });

  it('reset → TypeError whose cause has code ECONNRESET, the request is not carried out', async () => {
    const way = await makeWay();
    way.fake.fail('trackers.create', { kind: 'reset' });
    const error = await create(way).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(way.fake.trackers).toEqual([]);
  });

  it('commitThenDrop → the same error after the request was carried out, so a retry finds the tracker', async () => {
    const way = await makeWay();
    way.fake.fail('trackers.create', { kind: 'commitThenDrop' });
    await expect(create(way)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(way.fake.trackers).toHaveLength(1);
    expect((await create(way)).status).toBe(201);
    expect(way.fake.trackers).toHaveLength(1);
  });

  it('timeout → no response until the caller aborts, with the reason of its signal', async () => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { kind: 'timeout' });
    const controller = new AbortController();
    const response = couriers(way, controller.signal);
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 20);
    await expect(response).rejects.toBe(reason);
  });

  it('stall → headers, then a body that fails when the caller aborts', async () => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { kind: 'stall' });
    const controller = new AbortController();
    const response = await couriers(way, controller.signal);
    const text = response.text();
    setTimeout(() => controller.abort(new Error('enough')), 20);
    expect(response.status).toBe(200);
    await expect(text).rejects.toThrow();
  });

  it.each([
    ['badJson', 200, 'application/json; charset=utf-8', /^\{.*[^}]$/s],
    ['html', 502, 'text/html; charset=utf-8', /<html>/],
  ] as const)('%s → %i %s that is not JSON', async (kind, status, type, text) => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { kind });
    const response = await couriers(way);
    expect([response.status, response.headers.get('content-type')]).toEqual([status, type]);
    expect(await response.text()).toMatch(text);
  });
}

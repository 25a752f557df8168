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

  it('reset → TypeError with ECONNRESET as the code of its cause, nothing carried out', async () => {
    const way = await makeWay();
    way.fake.fail('trackers.create', { kind: 'reset' });
    const error = await create(way).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(way.fake.trackers).toEqual([]);
  });

  it('commitThenDrop → the same error, and the request is carried out', async () => {
    const way = await makeWay();
    way.fake.fail('trackers.create', { kind: 'commitThenDrop' });
    await expect(create(way)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(way.fake.trackers).toHaveLength(1);
  });

  it('commitThenDrop, then the same request → reused, so a retry creates no second tracker', async () => {
    const way = await makeWay();
    way.fake.fail('trackers.create', { kind: 'commitThenDrop' });
    await create(way).catch(() => {});
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

  it('badJson → 200 with JSON that is cut off', async () => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { kind: 'badJson' });
    const response = await couriers(way);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    await expect(response.json()).rejects.toThrow(SyntaxError);
  });

  it('html → 502 with a page', async () => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { kind: 'html' });
    const response = await couriers(way);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      502,
      'text/html; charset=utf-8',
    ]);
    expect(await response.text()).toContain('<html>');
  });

  it('429 with retryAfter → Retry-After', async () => {
    const way = await makeWay();
    way.fake.fail('couriers.list', { status: 429, retryAfter: 3 });
    const response = await couriers(way);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '3']);
  });

  it('no failure → 200', async () => {
    const way = await makeWay();
    const response = await couriers(way);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ data: { couriers: expect.any(Array) } });
  });
}

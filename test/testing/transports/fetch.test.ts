import { describe, expect, it } from 'vitest';
import { createFakeTrackingService } from '../../../src/testing/index.ts';
import { makeFake } from '../make-fake.ts';
import { itFailsAlike } from '../transports/failure-kinds.ts';

describe('fake.fetch', () => {
  itFailsAlike(() => {
    const fake = createFakeTrackingService({ limits: false });
    return { fake, fetch: fake.fetch, baseUrl: fake.baseUrl };
  });

  it('a Request object → served, with its body and headers', async () => {
    const { fake } = makeFake();
    const request = new Request(`${fake.baseUrl}/trackers`, {
      method: 'POST',
      headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
      body: '{"trackingNumber":"RR123456785CN"}',
    });
    expect((await fake.fetch(request)).status).toBe(201);
  });

  it('a signal that has aborted → rejects with its reason, nothing recorded', async () => {
    const { fake } = makeFake();
    const reason = new Error('too late');
    const call = fake.fetch(`${fake.baseUrl}/couriers`, { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    expect(fake.requests).toEqual([]);
  });

  it('an abort of the signal of a Request object → rejects', async () => {
    const { fake } = makeFake();
    fake.fail('*', { kind: 'timeout' });
    const controller = new AbortController();
    const call = fake.fetch(new Request(`${fake.baseUrl}/couriers`, { signal: controller.signal }));
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });
});

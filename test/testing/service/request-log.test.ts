import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../../src/testing/index.ts';
import { makeFake } from '../make-fake.ts';

describe('fake.requests', () => {
  it('historyLimit 2 and three requests → the latest two', async () => {
    const { fake, call } = makeFake({ historyLimit: 2 });
    for (const id of ['a', 'b', 'c']) await call('GET', `/trackers/${id}`);
    expect(fake.requests.map(({ path }) => path)).toEqual(['/public/v1/trackers/b', '/public/v1/trackers/c']);
  });

  it('no historyLimit → all', async () => {
    const { fake, call } = makeFake();
    for (let count = 0; count < 1200; count += 1) await call('GET', '/couriers');
    expect(fake.requests).toHaveLength(1200);
  });

  it('historyLimit -1 → ConfigurationError', () => {
    expect(() => makeFake({ historyLimit: -1 })).toThrow('Expected `historyLimit` to be');
  });
});

describe('onRequest', () => {
  async function told(act: (fake: ReturnType<typeof makeFake>) => Promise<unknown>) {
    const requests: RecordedRequest[] = [];
    await act(makeFake({ onRequest: (request) => requests.push({ ...request }) }));
    return requests;
  }

  it('a request → told once, with its status', async () => {
    expect(await told(({ call }) => call('GET', '/couriers'))).toMatchObject([
      { endpoint: 'couriers.list', status: 200 },
    ]);
  });

  it('a path nobody responses → told, too', async () => {
    expect(await told(({ call }) => call('GET', '/nothing'))).toMatchObject([
      { endpoint: undefined, status: 404 },
    ]);
  });

  it('a broken connection → told with its failure and no status', async () => {
    const requests = await told(async ({ fake, call }) => {
      fake.fail('*', { kind: 'reset' });
      await call('GET', '/couriers').catch(() => {});
    });
    expect(requests).toMatchObject([{ failure: 'reset', status: null }]);
  });
});

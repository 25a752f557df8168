import { describe, expect, test } from 'vitest';
import { contractFake } from './support/contract-fake.ts';
import { TRACKER } from './support/samples.ts';
import { stubClient } from './support/stub-client.ts';

/** A service with so many trackers, which gives pages of exactly the size that is asked for. */
function accountOf(count: number) {
  const trackers = Array.from({ length: count }, (_, index) => ({ ...TRACKER, trackerId: `t${index}` }));
  return stubClient(({ query }) => {
    const limit = Number(query['limit']);
    const start = (Number(query['page']) - 1) * limit;
    return { body: { data: { trackers: trackers.slice(start, start + limit) } } };
  });
}

async function countOf(stream: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of stream) count += 1;
  return count;
}

describe('hasMore', () => {
  test.each([
    [150, 500, 1, false],
    [150, 100, 1, true],
    [150, 100, 2, false],
    [200, 100, 1, true],
    [99, 100, 1, false],
    [0, 100, 1, false],
    [501, 500, 1, true],
    [501, 500, 2, false],
  ])('%i trackers, limit %i, page %i → %s', async (count, limit, page, hasMore) => {
    const { client } = accountOf(count);
    expect(await client.trackers.list({ limit, page })).toMatchObject({ hasMore });
  });
});

describe('listAll', () => {
  test.each([
    [150, 500, 2],
    [499, 500, 2],
    [501, 500, 3],
    [250, 100, 4],
  ])(
    '%i trackers, limit %i → all of them in %i requests, the last page empty',
    async (count, limit, pages) => {
      const { client, requests } = accountOf(count);
      expect(await countOf(client.trackers.listAll({ limit }))).toBe(count);
      expect(requests).toHaveLength(pages);
    },
  );

  test('1,000 trackers, limit 500 → only the last page may be empty', async () => {
    const { client, requests } = accountOf(1000);
    expect(await countOf(client.trackers.listAll({ limit: 500 }))).toBe(1000);
    expect(requests.length).toBeLessThanOrEqual(3);
  });

  test('every request → has both page and limit', async () => {
    const { client, requests } = accountOf(3);
    await countOf(client.trackers.listAll());
    await client.trackers.list();
    for (const { query } of requests)
      expect(Object.keys(query)).toEqual(expect.arrayContaining(['page', 'limit']));
  });

  test('the fake with 150 trackers → one page, no more', async () => {
    const { client } = contractFake();
    const inputs = Array.from({ length: 150 }, (_, index) => ({
      trackingNumber: `RR12345${index + 1000}CN`,
    }));
    expect(await countOf(client.trackers.createMany(inputs))).toBe(150);
    expect(await client.trackers.list({ limit: 500 })).toMatchObject({
      hasMore: false,
      trackers: { length: 150 },
    });
  });
});

import { describe, expect, it } from 'vitest';
import { codeOf, makeFake } from '../make-fake.ts';

async function withTrackers(count: number) {
  const fake = makeFake();
  for (let index = 0; index < count; index += 1) await fake.create({ shipmentReference: String(index) });
  const list = async (query: string) => {
    const response = await fake.call('GET', `/trackers?${query}`);
    const trackers = response.body.data?.trackers ?? [];
    return { response, references: trackers.map((tracker) => tracker.shipmentReference) };
  };
  return { ...fake, list };
}

describe('GET /trackers', () => {
  it('the first page → oldest first', async () => {
    const { list } = await withTrackers(3);
    expect((await list('page=1&limit=2')).references).toEqual(['0', '1']);
  });

  it('the last page → the rest', async () => {
    const { list } = await withTrackers(3);
    expect((await list('page=2&limit=2')).references).toEqual(['2']);
  });

  it('a page beyond the last → 200 and an empty list', async () => {
    const { list } = await withTrackers(1);
    const { response, references } = await list('page=3&limit=2');
    expect([response.status, references]).toEqual([200, []]);
  });

  it('sort=-1 → newest first', async () => {
    const { list } = await withTrackers(3);
    expect((await list('page=1&limit=2&sort=-1')).references).toEqual(['2', '1']);
  });

  it('sort=1 → oldest first', async () => {
    const { list } = await withTrackers(2);
    expect((await list('page=1&limit=2&sort=1')).references).toEqual(['0', '1']);
  });

  it('an archived tracker → still listed, with isSubscribed and isTracked false', async () => {
    const { call, createId } = makeFake();
    await call('PATCH', `/trackers/${await createId()}`, { isSubscribed: false });
    const { body } = await call('GET', '/trackers?page=1&limit=10');
    expect(body.data.trackers).toMatchObject([{ isSubscribed: false, isTracked: false }]);
  });

  it.each(['page=1', 'limit=10', ''])(
    'the query "%s" without page or limit → 400 missing_mandatory_field',
    async (query) => {
      const { list } = await withTrackers(0);
      const { response } = await list(query);
      expect([response.status, codeOf(response)]).toEqual([400, 'missing_mandatory_field']);
    },
  );

  it.each([
    'page=0&limit=1',
    'page=1&limit=0',
    'page=1&limit=501',
    'page=x&limit=1',
    'page=1.5&limit=1',
    'page=1&limit=1&sort=2',
  ])('the query "%s" → 400 validation_error', async (query) => {
    const { list } = await withTrackers(0);
    const { response } = await list(query);
    expect([response.status, codeOf(response)]).toEqual([400, 'validation_error']);
  });
});

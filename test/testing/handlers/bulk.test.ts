import { describe, expect, it } from 'vitest';
import { codeOf, makeFake, NUMBER, OTHER_NUMBER } from '../make-fake.ts';

const bulk = (fake: ReturnType<typeof makeFake>, items: unknown) =>
  fake.call('POST', '/trackers/bulk', items);
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ trackingNumber: `RR${100_000_000 + index}CN` }));

describe('POST /trackers/bulk', () => {
  it('new items → 201, status success, all created', async () => {
    const { status, body } = await bulk(makeFake(), many(2));
    expect(status).toBe(201);
    expect(body).toMatchObject({
      status: 'success',
      summary: { totalInputs: 2, totalCreated: 2, totalExisting: 0, totalErrors: 0 },
      data: [
        { itemStatus: 'created', inputData: many(2)[0], tracker: { isTracked: true }, errors: null },
        { itemStatus: 'created', inputData: many(2)[1], errors: null },
      ],
      error: null,
    });
  });

  it('an item that exists → 201, counted as existing', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    const { status, body } = await bulk(fake, [{ trackingNumber: NUMBER }, { trackingNumber: OTHER_NUMBER }]);
    expect(status).toBe(201);
    expect(body.summary).toMatchObject({ totalCreated: 1, totalExisting: 1 });
    expect(body.data[0]).toMatchObject({ itemStatus: 'existing', tracker: { trackerId: id } });
  });

  it('the same item twice in one request → created, then existing', async () => {
    const { body } = await bulk(makeFake(), [{ trackingNumber: NUMBER }, { trackingNumber: NUMBER }]);
    expect(body.data.map((item) => item.itemStatus)).toEqual(['created', 'existing']);
  });

  it('one bad item among good ones → 207 partial, with its errors and no tracker', async () => {
    const { status, body } = await bulk(makeFake(), [...many(1), { trackingNumber: '12345' }]);
    expect(status).toBe(207);
    expect(body).toMatchObject({
      status: 'partial',
      summary: { totalCreated: 1, totalErrors: 1 },
      data: [{}, { itemStatus: 'error', tracker: null, errors: [{ code: 'validation_error' }] }],
    });
  });

  it('an item with a client tracker id in use → its error is tracker_conflict', async () => {
    const fake = makeFake();
    await fake.create({ clientTrackerId: 'mine' });
    const { body } = await bulk(fake, [
      { trackingNumber: OTHER_NUMBER, clientTrackerId: 'mine' },
      ...many(1),
    ]);
    expect(body.data[0]).toMatchObject({ errors: [{ code: 'tracker_conflict' }] });
  });

  it('only bad items → 400, status error, processing_error, with the items', async () => {
    const response = await bulk(makeFake(), [{}, null]);
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ status: 'error', summary: { totalErrors: 2 } });
    expect(response.body.data).toHaveLength(2);
    expect(codeOf(response)).toBe('processing_error');
  });

  it('100 items → 201', async () => {
    expect((await bulk(makeFake(), many(100))).status).toBe(201);
  });

  it.each([
    ['no item', []],
    ['101 items', many(101)],
    ['an object', { trackers: many(1) }],
  ])('%s → 400 in its own envelope, without data', async (_, items) => {
    const { status, body } = await bulk(makeFake(), items);
    expect(status).toBe(400);
    expect(body).toEqual({
      status: 'error',
      summary: null,
      data: null,
      error: { code: 'validation_error', message: expect.any(String) },
    });
  });

  it('malformed JSON → 400 parsing_error in its own envelope', async () => {
    const response = await bulk(makeFake(), '[{');
    expect(response.body).toMatchObject({ status: 'error', data: null, error: { code: 'parsing_error' } });
  });

  it('an unknown key → 401 in its own envelope', async () => {
    const { call } = makeFake({ apiKeys: ['right'] });
    const response = await call('POST', '/trackers/bulk', many(1), { authorization: 'Bearer wrong' });
    expect(response.status).toBe(401);
    expect(response.body).toMatchObject({
      status: 'error',
      data: null,
      error: { code: 'auth_invalid_api_key' },
    });
  });

  it('more new items than the quota has left → 403 quota_limit_reached, nothing created', async () => {
    const fake = makeFake({ plans: { perShipment: { quota: 2 } } });
    const response = await bulk(fake, many(3));
    expect([response.status, codeOf(response), response.body.data]).toEqual([
      403,
      'quota_limit_reached',
      null,
    ]);
    expect(fake.fake.trackers).toEqual([]);
  });

  it('as many new items as the quota has left, beside existing and bad ones → 207', async () => {
    const fake = makeFake({ plans: { perShipment: { quota: 2 } } });
    await fake.create();
    const items = [{ trackingNumber: NUMBER }, ...many(1), ...many(1), { trackingNumber: '12345' }];
    expect((await bulk(fake, items)).status).toBe(207);
  });
});

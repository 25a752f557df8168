import { describe, expect, it } from 'vitest';
import { TrackingClient } from '../../../src/client.ts';
import { DAY_MS, makeFake, NUMBER, OTHER_NUMBER, refusal, START_MS } from '../make-fake.ts';

const MINE = { clientTrackerId: 'mine' };
const formatDayBefore = (days: number) => new Date(START_MS - days * DAY_MS).toISOString().slice(0, 10);

describe('POST /trackers', () => {
  it('a new number → 201 and a tracker, its number in upper case and its couriers as a list', async () => {
    const input = {
      trackingNumber: NUMBER.toLowerCase(),
      shipmentReference: 'order 7',
      clientTrackerId: 'mine',
      courierCode: 'us-post',
    };
    const { status, body } = await makeFake().create(input);
    expect(status).toBe(201);
    expect(body).toEqual({
      data: {
        tracker: {
          ...input,
          trackerId: expect.any(String),
          trackingNumber: NUMBER,
          courierCode: ['us-post'],
          isSubscribed: true,
          isTracked: true,
          createdAt: '2026-03-10T12:00:00.000Z',
        },
      },
    });
  });

  it.each<[string, object, object | undefined]>([
    ['a recipient with a name', { recipient: { name: 'Ada', email: 'ada@example.test' } }, { name: 'Ada' }],
    ['a recipient with an empty name', { recipient: { name: '' } }, undefined],
    ['a recipient without a name', { recipient: { email: 'ada@example.test' } }, undefined],
  ])('%s → recipient of the tracker: $2', async (_, input, recipient) => {
    const { create, call } = makeFake();
    const { trackerId, ...tracker } = (await create(input)).body.data.tracker;
    expect(tracker.recipient).toEqual(recipient);
    const again = (await call('GET', `/trackers/${trackerId}`)).body.data.tracker;
    expect(again.recipient).toEqual(recipient);
  });

  it.each([
    ['an alpha-2 code of no country', { originCountryCode: 'XX' }],
    ['an alpha-3 code of no country', { destinationCountryCode: 'XXX' }],
  ])('%s → 400 validation_error, and no tracker', async (_, input) => {
    const { fake, create } = makeFake();
    expect(refusal(await create(input))).toEqual([400, 'validation_error']);
    expect(fake.trackers).toEqual([]);
  });

  it('two broken rules → an error for each', async () => {
    const { body } = await makeFake().create({ clientTrackerId: 'x'.repeat(101), destinationPostCode: '' });
    expect(body.errors).toHaveLength(2);
  });

  it.each([
    ['{', 'parsing_error'],
    ['', 'parsing_error'],
    ['{}', 'missing_mandatory_field'],
    ['null', 'validation_error'],
    ['[]', 'validation_error'],
  ])('the body %j → 400 %s', async (text, code) => {
    expect(refusal(await makeFake().call('POST', '/trackers', text))).toEqual([400, code]);
  });

  it.each([
    ['181 days ago in its zone, 180 in UTC', `${formatDayBefore(181)}T23:00:00-05:00`, [201, undefined]],
    [
      '180 days ago in its zone, 181 in UTC',
      `${formatDayBefore(180)}T01:30:00+02:00`,
      [400, 'shipping_date_outdated'],
    ],
  ])('shipped %s on the clock of the fake → status and error code $2', async (_, shippingDate, outcome) => {
    expect(refusal(await makeFake().create({ shippingDate }))).toEqual(outcome);
  });

  it('a fake clock years behind the machine → a shipping date of that time is accepted', async () => {
    const { create } = makeFake({ now: () => Date.UTC(2001, 0, 10) });
    expect((await create({ shippingDate: '2001-01-09' })).status).toBe(201);
  });

  it('the quota used up → 403 quota_limit_reached, and reuse still works', async () => {
    const { create, createId } = makeFake({ plans: { perShipment: { quota: 1 } } });
    const first = await createId();
    expect(refusal(await create({ shipmentReference: 'another' }))).toEqual([403, 'quota_limit_reached']);
    expect(await createId()).toBe(first);
  });

  it('unknown fields → ignored, and the tracker is created', async () => {
    const { status } = await makeFake().create({ insuredValue: 12, recipient: { phone: '1' } });
    expect(status).toBe(201);
  });
});

describe('GET /trackers/{trackerId}', () => {
  it.each<[string, number, string | undefined]>([
    ['ID', 200, undefined],
    ['ID?searchBy=trackerId', 200, undefined],
    [`${encodeURIComponent('order/7 é')}?searchBy=clientTrackerId`, 200, undefined],
    ['nobody?searchBy=clientTrackerId', 404, 'tracker_not_found'],
    ['mine?searchBy=trackingNumber', 400, 'validation_error'],
    ['nobody/results', 404, 'tracker_not_found'],
  ])('%s → %i %s', async (path, status, code) => {
    const { call, createId } = makeFake();
    await createId({ clientTrackerId: 'mine', shipmentReference: 'another' });
    const id = await createId({ clientTrackerId: 'order/7 é' });
    const response = await call('GET', `/trackers/${path.replace('ID', id)}`);
    expect(refusal(response)).toEqual([status, code]);
    if (status === 200) expect(response.body.data.tracker.trackerId).toBe(id);
  });
});

describe('GET /trackers', () => {
  it.each([
    ['page=1&limit=2', ['0', '1']],
    ['page=2&limit=2', ['2']],
    ['page=3&limit=2', []],
    ['page=1&limit=2&sort=-1', ['2', '1']],
    ['limit=2', ['0', '1']],
    ['page=1', ['0', '1', '2']],
    ['page=2', []],
    ['', ['0', '1', '2']],
    ['sort=-1', ['2', '1', '0']],
  ])('three trackers and %s → %j', async (query, references) => {
    const { call, create } = makeFake();
    for (const shipmentReference of ['0', '1', '2']) await create({ shipmentReference });
    const { status, body } = await call('GET', `/trackers?${query}`);
    expect(status).toBe(200);
    expect(body.data.trackers.map(({ shipmentReference }) => shipmentReference)).toEqual(references);
  });

  it('101 trackers, and neither page nor limit → the oldest 100', async () => {
    const { fake, call } = makeFake();
    const items = Array.from({ length: 101 }, (_, index) => ({
      trackingNumber: `RR${100_000_000 + index}CN`,
    }));
    await call('POST', '/trackers/bulk', items.slice(0, 100));
    await call('POST', '/trackers/bulk', items.slice(100));
    const { trackers } = (await call('GET', '/trackers')).body.data;
    expect(trackers).toEqual(fake.trackers.slice(0, 100));
  });

  it.each([
    ['page=1&limit=501', 'validation_error'],
    ['page=0', 'validation_error'],
    ['limit=', 'validation_error'],
    ['page=x&limit=1', 'validation_error'],
    ['page=1&limit=1&sort=2', 'validation_error'],
  ])('%s → 400 %s', async (query, code) => {
    expect(refusal(await makeFake().call('GET', `/trackers?${query}`))).toEqual([400, code]);
  });
});

describe('PATCH /trackers/{trackerId}', () => {
  async function withTracker(input: object = {}) {
    const made = makeFake();
    const id = await made.createId(input);
    const countEvents = async () =>
      (await made.call('GET', `/trackers/${id}/results`)).body.data.trackings[0].events.length;
    const getMine = async () =>
      (await made.call('GET', '/trackers/mine?searchBy=clientTrackerId')).body.data.tracker.trackerId;
    const patch = (body: unknown) => made.call('PATCH', `/trackers/${id}`, body);
    return { ...made, id, countEvents, getMine, patch };
  }

  it.each([
    ['courierCode', { courierCode: ['us-post'] }, { courierCode: 'us-post' }],
    ['originCountryCode', { originCountryCode: 'CHN' }, { originCountryCode: 'CN' }],
    ['destinationCountryCode', { destinationCountryCode: 'USA' }, { destinationCountryCode: 'US' }],
    ['destinationPostCode', { destinationPostCode: '94901' }, { destinationPostCode: '94901' }],
    ['shippingDate', { shippingDate: '2026-03-01T08:00:00Z' }, { shippingDate: '2026-03-01' }],
    ['courierName', { courierName: 'USPS' }, { courierName: 'USPS' }],
    ['trackingUrl', { trackingUrl: 'https://a.test' }, { trackingUrl: 'https://a.test' }],
  ])('%s → changed, and takes part in duplicate matching', async (_, change, same) => {
    const { patch, createId, id } = await withTracker();
    expect((await patch(change)).status).toBe(200);
    expect(await createId(same)).toBe(id);
    expect(await createId()).not.toBe(id);
  });

  it('recipient.name → in the tracker of each response; an empty name removes it', async () => {
    const { patch, call, id } = await withTracker();
    const { tracker } = (await patch({ recipient: { name: 'Ada' } })).body.data;
    expect(tracker.recipient).toEqual({ name: 'Ada' });
    expect((await patch({ destinationPostCode: '1' })).body.data.tracker.recipient).toEqual({ name: 'Ada' });
    await patch({ recipient: { name: '' } });
    expect((await call('GET', `/trackers/${id}`)).body.data.tracker).not.toHaveProperty('recipient');
  });

  it('isSubscribed false, by either id → archived, not tracked, still listed; true → tracked again', async () => {
    const { call, patch } = await withTracker({ clientTrackerId: 'mine' });
    await call('PATCH', '/trackers/mine?searchBy=clientTrackerId', { isSubscribed: false });
    const { body } = await call('GET', '/trackers?page=1&limit=10');
    expect(body.data.trackers).toMatchObject([{ isSubscribed: false, isTracked: false }]);
    expect((await patch({ isSubscribed: true })).body.data.tracker.isTracked).toBe(true);
  });

  it('isSubscribed true after another tracker took the client tracker id → 400 tracker_conflict', async () => {
    const { patch, create } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    await create({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    expect(refusal(await patch({ isSubscribed: true }))).toEqual([400, 'tracker_conflict']);
  });

  it.each([
    ['courierCode', { courierCode: 'fr-post' }, false],
    ['originCountryCode', { originCountryCode: 'CN' }, false],
    ['destinationCountryCode', { destinationCountryCode: 'US' }, false],
    ['a free field with a fixed one', { destinationPostCode: '94901', courierCode: 'fr-post' }, false],
    ['destinationPostCode', { destinationPostCode: '94901' }, true],
    ['courierName', { courierName: 'USPS' }, true],
    ['trackingUrl', { trackingUrl: 'https://a.test' }, true],
    ['recipient.name', { recipient: { name: 'Ada' } }, true],
    ['isSubscribed', { isSubscribed: false }, true],
    ['a field that no patch has', { trackingNumber: OTHER_NUMBER }, true],
  ])('%s after data was gathered → changed: $2', async (_, change, isChanged) => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).addEvent();
    const outcome = isChanged ? [200, undefined] : [400, 'tracker_not_updatable'];
    expect(refusal(await patch(change))).toEqual(outcome);
  });

  it('isSubscribed true after a stop without archiving → still stopped', async () => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).stopTracking();
    expect((await patch({ isSubscribed: true })).body.data.tracker.isTracked).toBe(false);
  });

  it('archived before its first results, then active again → results after the delay of a new tracker', async () => {
    const { fake, countEvents, patch, advance } = await withTracker();
    await patch({ isSubscribed: false });
    fake.shipment(NUMBER).addEvent();
    advance(10_000);
    await patch({ isSubscribed: true });
    expect(await countEvents()).toBe(0);
    advance(2000);
    expect(await countEvents()).toBe(1);
  });

  it.each([
    ['no field', {}, 'validation_error'],
    ['recipient.email', { recipient: { email: 'ada@example.test' } }, 'validation_error'],
    ['a country that does not exist', { originCountryCode: 'XX' }, 'validation_error'],
    ['a date older than 180 days', { shippingDate: formatDayBefore(181) }, 'shipping_date_outdated'],
  ])('%s → 400 $2', async (_, body, code) => {
    const { patch } = await withTracker();
    expect(refusal(await patch(body))).toEqual([400, code]);
  });

  it('archived trackers of one client tracker id → the id finds the last tracker that used it', async () => {
    const { call, patch, createId, id, getMine } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    expect(await getMine()).toBe(id);
    const second = await createId({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    expect(await getMine()).toBe(second);
    await call('PATCH', `/trackers/${second}`, { isSubscribed: false });
    await patch({ isSubscribed: true });
    expect(await getMine()).toBe(id);
  });

  it.each([['nl-post'], ['jp-post']])(
    'the field that the courier %s requires → results exist, and are pushed',
    async (courierCode) => {
      const input = { courierCode, destinationCountryCode: 'US' };
      const { fake, countEvents, patch } = await withTracker(input);
      fake.shipment(NUMBER).addEvent();
      expect(await countEvents()).toBe(0);
      await patch({ destinationPostCode: '94901' });
      expect(await countEvents()).toBe(1);
      expect(fake.webhooks.pending).toHaveLength(1);
    },
  );
});

describe('POST /trackers/bulk', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ trackingNumber: `RR${100_000_000 + index}CN` }));
  const bulk = (items: unknown, made = makeFake()) => made.call('POST', '/trackers/bulk', items);

  it('100 new items → 201, status success, all created', async () => {
    const { status, body } = await bulk(many(100));
    expect([status, body.data.length]).toEqual([201, 100]);
    expect(body).toMatchObject({
      status: 'success',
      summary: { totalInputs: 100, totalCreated: 100, totalExisting: 0, totalErrors: 0 },
      error: null,
    });
    const [inputData] = many(1);
    const tracker = { trackingNumber: inputData?.trackingNumber, isTracked: true };
    expect(body.data[0]).toMatchObject({ itemStatus: 'created', inputData, tracker, errors: null });
  });

  it('an existing item, and an item twice in one request → 201, counted as existing', async () => {
    const made = makeFake();
    const trackerId = await made.createId();
    const { status, body } = await bulk([{ trackingNumber: NUMBER }, ...many(1), ...many(1)], made);
    expect(status).toBe(201);
    expect(body.summary).toMatchObject({ totalCreated: 1, totalExisting: 2 });
    expect(body.data[0]).toMatchObject({ itemStatus: 'existing', tracker: { trackerId } });
    expect(body.data[2]).toMatchObject({ itemStatus: 'existing' });
  });

  it('bad items among good ones → 207 partial, with their errors and no tracker', async () => {
    const made = makeFake();
    await made.create({ clientTrackerId: 'mine' });
    const taken = { trackingNumber: OTHER_NUMBER, clientTrackerId: 'mine' };
    const { status, body } = await bulk([...many(1), { trackingNumber: '12345' }, taken], made);
    expect(status).toBe(207);
    expect(body).toMatchObject({
      status: 'partial',
      summary: { totalCreated: 1, totalErrors: 2 },
      data: [
        {},
        { itemStatus: 'error', tracker: null, errors: [{ code: 'validation_error' }] },
        { itemStatus: 'error', errors: [{ code: 'tracker_conflict' }] },
      ],
    });
  });

  it('only bad items → 400, status error, processing_error, with the items', async () => {
    const response = await bulk([{}, null]);
    expect(refusal(response)).toEqual([400, 'processing_error']);
    expect(response.body).toMatchObject({ status: 'error', summary: { totalErrors: 2 }, data: [{}, {}] });
  });

  it.each([
    ['no item', [], 400, 'validation_error'],
    ['101 items', many(101), 403, 'bulk_create_limit_exceeded'],
    ['101 items of which one breaks a rule', [...many(100), {}], 403, 'bulk_create_limit_exceeded'],
    ['1,000 items', many(1000), 403, 'bulk_create_limit_exceeded'],
    ['an object', { trackers: many(1) }, 400, 'validation_error'],
    ['malformed JSON', '[{', 400, 'parsing_error'],
  ])('%s → $2 $3 in its own envelope, without data, and no tracker', async (_, items, status, code) => {
    const made = makeFake();
    const response = await bulk(items, made);
    const error = { code, message: expect.any(String) };
    expect([response.status, response.body]).toEqual([
      status,
      { status: 'error', summary: null, data: null, error },
    ]);
    expect(made.fake.trackers).toEqual([]);
  });

  const withQuota = (quota: number) => makeFake({ plans: { perShipment: { quota } } });

  it('more new items than the quota has left → 403 quota_limit_reached, and nothing is created', async () => {
    const made = withQuota(52);
    await made.create();
    await made.create({ trackingNumber: OTHER_NUMBER });
    const response = await bulk(many(100), made);
    expect([refusal(response), response.body.data]).toEqual([[403, 'quota_limit_reached'], null]);
    expect(made.fake.trackers.map(({ trackingNumber }) => trackingNumber)).toEqual([NUMBER, OTHER_NUMBER]);
    made.advance(10_000);
    expect(made.fake.webhooks.pending).toEqual([]);
    expect((await bulk(many(50), made)).status).toBe(201);
  });

  it('createMany beyond the quota → an error for each input, and no tracker', async () => {
    const { fake } = withQuota(50);
    const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
    const statuses = new Set<string>();
    for await (const { status } of client.trackers.createMany(many(100))) statuses.add(status);
    expect([...statuses]).toEqual(['error']);
    expect(fake.trackers).toEqual([]);
  });

  it('a refused request with the option `play` → starts no scenario', async () => {
    const made = makeFake({ plans: { perShipment: { quota: 1 } }, play: ['exception', 'never-found'] });
    await bulk(many(2), made);
    await made.create();
    expect(made.fake.shipment(NUMBER).events).toHaveLength(1); // of the first scenario
  });

  // Each list needs two new trackers.
  it.each<[string, object[]]>([
    ['the same item twice', [...many(2), ...many(2)]],
    ['an item with and without a client tracker id', [{ ...many(1)[0], ...MINE }, ...many(2)]],
    [
      'a client tracker id with another payload',
      [...many(1), { trackingNumber: OTHER_NUMBER, ...MINE }, { ...many(1)[0], ...MINE }],
    ],
    ['existing and bad items', [{ trackingNumber: NUMBER }, {}, ...many(2), { trackingNumber: '12345' }]],
  ])('%s, two new trackers in all → refused only if the quota is smaller', async (_, items) => {
    const outcomes = [];
    for (const quota of [2, 3]) {
      const made = withQuota(quota);
      await made.create();
      const { status } = await bulk(items, made);
      outcomes.push([status < 300, made.fake.trackers.length]);
    }
    expect(outcomes).toEqual([
      [false, 1],
      [true, 3],
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { codeOf, DAY_MS, makeFake, NUMBER } from '../make-fake.ts';

const resultsOf = (fake: ReturnType<typeof makeFake>, id: string) =>
  fake.call('GET', `/trackers/${id}/results`);

describe('GET /trackers/{trackerId}/results', () => {
  it('right after creation → 404 parcel_not_found, although couriers know the number', async () => {
    const fake = makeFake();
    fake.fake.shipment(NUMBER).addEvent();
    const response = await resultsOf(fake, await fake.createId());
    expect([response.status, codeOf(response)]).toEqual([404, 'parcel_not_found']);
  });

  it('resultsDelayMs after creation → 200 with the full history', async () => {
    const fake = makeFake({ resultsDelayMs: 5000 });
    fake.fake.shipment(NUMBER).addEvent().deliver();
    const id = await fake.createId();
    fake.advance(4999);
    expect((await resultsOf(fake, id)).status).toBe(404);
    fake.advance(1);
    expect((await resultsOf(fake, id)).body.data.trackings[0].events).toHaveLength(2);
  });

  it('an event that is discovered meanwhile → there at once', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.fake.shipment(NUMBER).addEvent();
    expect((await resultsOf(fake, id)).status).toBe(200);
  });

  it('couriers that know nothing → 404 for as long as it is tracked', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.advance(10_000_000);
    expect(codeOf(await resultsOf(fake, id))).toBe('parcel_not_found');
  });

  it('noResults "empty" → 200 with an empty list instead', async () => {
    const fake = makeFake({ noResults: 'empty' });
    const { status, body } = await resultsOf(fake, await fake.createId());
    expect([status, body]).toEqual([200, { data: { trackings: [] } }]);
  });

  it('given up without an event → 404 for ever', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.fake.shipment(NUMBER).stopTracking();
    fake.advance(365 * DAY_MS);
    expect(codeOf(await resultsOf(fake, id))).toBe('parcel_not_found');
    expect(fake.fake.trackers).toMatchObject([{ isTracked: false }]);
  });

  it('several events → newest first, and the shipment as of the newest', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.fake.shipment(NUMBER).addEvent({ eventId: 'a' }).deliver({ eventId: 'b' });
    const [tracking] = (await resultsOf(fake, id)).body.data.trackings;
    expect(tracking.events.map((event) => event.eventId)).toEqual(['b', 'a']);
    expect(tracking.shipment).toMatchObject({
      statusMilestone: 'delivered',
      statusCode: 'delivery_delivered',
    });
  });

  it('two events of a milestone → statistics hold the time of the first', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.fake
      .shipment(NUMBER)
      .addEvent({ occurrenceDatetime: '2026-03-01' })
      .addEvent({ occurrenceDatetime: '2026-03-02' });
    const [{ statistics }] = (await resultsOf(fake, id)).body.data.trackings;
    expect(statistics.timestamps).toMatchObject({ inTransitDatetime: '2026-03-01', deliveredDatetime: null });
  });

  it('the hints of the tracker → shown as the places of the shipment, in alpha-2', async () => {
    const fake = makeFake();
    const id = await fake.createId({ originCountryCode: 'chn', destinationCountryCode: 'USA' });
    fake.fake.shipment(NUMBER).addEvent();
    const [{ shipment }] = (await resultsOf(fake, id)).body.data.trackings;
    expect(shipment).toMatchObject({ originCountryCode: 'CN', destinationCountryCode: 'US' });
  });

  it('no value for an add-on or a deprecated field → absent, not null', async () => {
    const fake = makeFake();
    const id = await fake.createId();
    fake.fake.shipment(NUMBER).addEvent();
    const [tracking] = (await resultsOf(fake, id)).body.data.trackings;
    expect(tracking.shipment.delivery).not.toHaveProperty('aiPredictiveDeliveryDate');
    expect(tracking.shipment.delivery).not.toHaveProperty('signedBy');
    expect(tracking.events[0]).not.toHaveProperty('datetime');
  });

  it('a courier that asks for a field that was not given → no results', async () => {
    const fake = makeFake();
    fake.fake.shipment(NUMBER).addEvent();
    const id = await fake.createId({ courierCode: 'nl-post' });
    fake.advance(10_000);
    expect((await resultsOf(fake, id)).status).toBe(404);
  });

  it('searchBy=clientTrackerId → the results of that tracker', async () => {
    const fake = makeFake();
    await fake.create({ clientTrackerId: 'mine' });
    fake.fake.shipment(NUMBER).addEvent();
    const response = await fake.call('GET', '/trackers/mine/results?searchBy=clientTrackerId');
    expect(response.body.data.trackings[0].tracker.clientTrackerId).toBe('mine');
  });

  it('an unknown tracker → 404 tracker_not_found', async () => {
    expect(codeOf(await resultsOf(makeFake(), 'nobody'))).toBe('tracker_not_found');
  });
});

describe('GET /trackers/search/{trackingNumber}/results', () => {
  const search = (fake: ReturnType<typeof makeFake>, number: string) =>
    fake.call('GET', `/trackers/search/${encodeURIComponent(number)}/results`);

  it('two trackers of the number → two trackings', async () => {
    const fake = makeFake();
    await fake.create();
    await fake.create({ shipmentReference: 'another' });
    fake.fake.shipment(NUMBER).addEvent();
    expect((await search(fake, NUMBER)).body.data.trackings).toHaveLength(2);
  });

  it('a number in lower case → found', async () => {
    const fake = makeFake();
    await fake.create();
    fake.fake.shipment(NUMBER).addEvent();
    expect((await search(fake, NUMBER.toLowerCase())).body.data.trackings).toHaveLength(1);
  });

  it('a number with a slash, encoded → found', async () => {
    const fake = makeFake();
    await fake.create({ trackingNumber: 'AB/12345' });
    fake.fake.shipment('AB/12345').addEvent();
    expect((await search(fake, 'AB/12345')).body.data.trackings).toHaveLength(1);
  });

  it('one tracker with results, one without → only the one with results', async () => {
    const fake = makeFake();
    await fake.create();
    fake.fake.shipment(NUMBER).addEvent();
    const withResults = fake.fake.trackers[0]?.trackerId;
    await fake.create({ shipmentReference: 'another' });
    const { trackings } = (await search(fake, NUMBER)).body.data;
    expect(trackings.map(({ tracker }) => tracker.trackerId)).toEqual([withResults]);
  });

  it('trackers without results → 404 parcel_not_found', async () => {
    const fake = makeFake();
    await fake.create();
    const response = await search(fake, NUMBER);
    expect([response.status, codeOf(response)]).toEqual([404, 'parcel_not_found']);
  });

  it('trackers without results, noResults "empty" → 200 and an empty list', async () => {
    const fake = makeFake({ noResults: 'empty' });
    await fake.create();
    const { status, body } = await search(fake, NUMBER);
    expect([status, body]).toEqual([200, { data: { trackings: [] } }]);
  });

  it.each(['parcel_not_found', 'empty'] as const)(
    'a number of no tracker, noResults %j → 200 and an empty list',
    async (noResults) => {
      const { status, body } = await search(makeFake({ noResults }), NUMBER);
      expect([status, body]).toEqual([200, { data: { trackings: [] } }]);
    },
  );

  it('no tracking number → 400 validation_error', async () => {
    const response = await search(makeFake(), 'a b');
    expect([response.status, codeOf(response)]).toEqual([400, 'validation_error']);
  });
});

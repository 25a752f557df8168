import { describe, expect, it } from 'vitest';
import { makeFake, NUMBER, OTHER_NUMBER, readCode, refusal } from '../../make-fake.ts';

const PENDING = { shipment: { statusMilestone: 'pending' }, events: [] };

function makeWithResults(options: Parameters<typeof makeFake>[0] = {}) {
  const made = makeFake(options);
  const results = (id: string) => made.call('GET', `/trackers/${id}/results`);
  const search = (number: string) =>
    made.call('GET', `/trackers/search/${encodeURIComponent(number)}/results`);
  /** The results of a tracker that has some. */
  const readResults = async (id: string) => (await results(id)).body.data.trackings[0];
  return { ...made, shipment: made.fake.shipment(NUMBER), results, search, readResults };
}

describe('GET /trackers/{trackerId}/results', () => {
  it('a request after resultsDelayMs → 200 with the full history; before → one pending tracking', async () => {
    const { shipment, createId, results, advance } = makeWithResults({ resultsDelayMs: 5000 });
    shipment.addEvent().deliver();
    const id = await createId();
    advance(4999);
    expect((await results(id)).body.data.trackings).toMatchObject([PENDING]);
    advance(1);
    expect((await results(id)).body.data.trackings[0].events).toHaveLength(2);
  });

  it('couriers without events → pending, also when tracking has stopped', async () => {
    const { shipment, createId, results, advance } = makeWithResults();
    const id = await createId();
    advance(10_000_000);
    const tracker = { trackerId: id, isTracked: true };
    expect((await results(id)).body.data.trackings).toMatchObject([{ ...PENDING, tracker }]);
    shipment.stopTracking();
    tracker.isTracked = false;
    expect((await results(id)).body.data.trackings).toMatchObject([{ ...PENDING, tracker }]);
  });

  it('a pending tracking → every time and status is null, and the countries are those of the tracker', async () => {
    const { createId, readResults } = makeWithResults();
    const { shipment, statistics } = await readResults(await createId({ originCountryCode: 'CHN' }));
    expect(shipment).toMatchObject({ statusCode: null, statusCategory: null, originCountryCode: 'CN' });
    expect(new Set(Object.values(statistics.timestamps ?? {}))).toEqual(new Set([null]));
  });

  it('events added out of order → newest first, the shipment as of the newest, the first time of each milestone', async () => {
    const { shipment, createId, readResults } = makeWithResults();
    const id = await createId();
    shipment
      .deliver({ eventId: 'c', occurrenceDatetime: '2026-03-03' })
      .addEvent(
        { eventId: 'a', occurrenceDatetime: '2026-03-01' },
        { eventId: 'b', occurrenceDatetime: '2026-03-02' },
      );
    const tracking = await readResults(id);
    expect(tracking.events.map((event) => event.eventId)).toEqual(['c', 'b', 'a']);
    expect(tracking.shipment).toMatchObject({ statusCode: 'delivery_delivered', statusCategory: 'delivery' });
    expect(tracking.statistics.timestamps).toMatchObject({
      inTransitDatetime: '2026-03-01',
      deliveredDatetime: '2026-03-03',
      exceptionDatetime: null,
    });
  });

  it('countries of the tracker → those of the shipment in alpha-2; add-ons are absent, not null', async () => {
    const { shipment, createId, readResults } = makeWithResults();
    const id = await createId({ originCountryCode: 'CHN', destinationCountryCode: 'USA' });
    shipment.addEvent();
    const tracking = await readResults(id);
    expect(tracking.shipment).toMatchObject({ originCountryCode: 'CN', destinationCountryCode: 'US' });
    expect(tracking.shipment.delivery).not.toHaveProperty('aiPredictiveDeliveryDate');
    expect(tracking.shipment.delivery).not.toHaveProperty('signedBy');
    expect(tracking.events[0]).not.toHaveProperty('datetime');
  });
});

describe('GET /trackers/search/{trackingNumber}/results', () => {
  it('a number of two trackers, in any case → the results of both; the tracker without events is pending', async () => {
    const { shipment, createId, search, advance } = makeWithResults();
    const first = await createId();
    shipment.addEvent();
    const second = await createId({ shipmentReference: 'another' });
    const readFound = async () =>
      (await search(NUMBER.toLowerCase())).body.data.trackings.map(({ tracker, events }) => [
        tracker.trackerId,
        events.length,
      ]);
    expect(await readFound()).toEqual([
      [first, 1],
      [second, 0],
    ]);
    advance(2000);
    expect(await readFound()).toEqual([
      [first, 1],
      [second, 1],
    ]);
  });

  it('a number without a tracker → 404 tracker_not_found', async () => {
    const { fake, search, create } = makeWithResults();
    fake.shipment(OTHER_NUMBER).deliver(); // Couriers know the number, but no tracker has it.
    await create();
    expect(refusal(await search(OTHER_NUMBER))).toEqual([404, 'tracker_not_found']);
  });

  it('a number whose only tracker is archived → its results', async () => {
    const { call, createId, search } = makeWithResults();
    await call('PATCH', `/trackers/${await createId()}`, { isSubscribed: false });
    expect((await search(NUMBER)).body.data.trackings).toMatchObject([PENDING]);
  });

  it('a number with a slash, encoded → found; no tracking number → 400 validation_error', async () => {
    const { fake, create, search } = makeWithResults();
    await create({ trackingNumber: 'AB/12345' });
    fake.shipment('AB/12345').addEvent();
    expect((await search('AB/12345')).body.data.trackings).toHaveLength(1);
    expect(refusal(await search('a b'))).toEqual([400, 'validation_error']);
  });
});

describe('noResults', () => {
  async function readAll(noResults?: 'pending' | 'parcel_not_found' | 'empty') {
    const { createId, results, search } = makeWithResults(noResults === undefined ? {} : { noResults });
    const withoutTracker = await search(NUMBER);
    const ofTracker = await results(await createId());
    return { withoutTracker, ofTracker, ofNumber: await search(NUMBER) };
  }

  it.each(['pending', undefined] as const)('%s → one pending tracking', async (noResults) => {
    const { withoutTracker, ofTracker, ofNumber } = await readAll(noResults);
    for (const { status, body } of [ofTracker, ofNumber])
      expect([status, body.data.trackings]).toMatchObject([200, [PENDING]]);
    expect(refusal(withoutTracker)).toEqual([404, 'tracker_not_found']);
  });

  it.each([
    ['parcel_not_found', [404, 'parcel_not_found']],
    ['empty', [200, undefined]],
  ] as const)('%s → status and code %j without events', async (noResults, outcome) => {
    const { withoutTracker, ofTracker, ofNumber } = await readAll(noResults);
    for (const response of [ofTracker, ofNumber]) expect(refusal(response)).toEqual(outcome);
    if (noResults === 'empty') expect(ofTracker.body).toEqual({ data: { trackings: [] } });
    expect(refusal(withoutTracker)).toEqual(noResults === 'empty' ? outcome : [404, 'tracker_not_found']);
  });

  it.each(['parcel_not_found', 'empty'] as const)(
    '%s, a number of two trackers → only the tracker with events',
    async (noResults) => {
      const { shipment, create, createId, search } = makeWithResults({ noResults });
      const first = await createId();
      shipment.addEvent();
      await create({ shipmentReference: 'another' });
      const { trackings } = (await search(NUMBER)).body.data;
      expect(trackings.map(({ tracker }) => tracker.trackerId)).toEqual([first]);
    },
  );
});

describe('POST /trackers/track', () => {
  it('a number that couriers know → 201 with the tracker and its results at once', async () => {
    const { shipment, track } = makeWithResults();
    shipment.deliver();
    const { status, body } = await track();
    expect(status).toBe(201);
    expect(body.data.trackings).toMatchObject([
      { tracker: { trackingNumber: NUMBER }, events: [{ statusMilestone: 'delivered' }] },
    ]);
  });

  it('an unknown number → pending, without events; the same payload later → 200 with new results', async () => {
    const { shipment, track } = makeWithResults();
    const [first] = (await track()).body.data.trackings;
    expect(first).toMatchObject(PENDING);
    shipment.deliver();
    const { status, body } = await track();
    expect([status, body.data.trackings[0].tracker.trackerId]).toEqual([200, first.tracker.trackerId]);
    expect(body.data.trackings[0].events).toHaveLength(1);
  });

  it.each([
    ['a courier that cannot be asked synchronously', 0, { courierCode: 'cn-post' }],
    ['no courier, and the one that carries it cannot be asked synchronously', 0, {}],
    ['two couriers, one of which can be asked synchronously', 1, { courierCode: ['cn-post', 'us-post'] }],
    ['a courier of the test that is slow', 0, { courierCode: 'slow-post' }],
  ])('%s → events in the first response: %i, ten seconds later: 1', async (_, count, input) => {
    const { fake, shipment, track, advance } = makeWithResults();
    fake.couriers.push({ courierCode: 'slow-post', supportsSynchronousFetch: false });
    shipment.deliver({ courierCode: 'cn-post' });
    expect((await track(input)).body.data.trackings[0].events).toHaveLength(count);
    advance(10_000);
    expect((await track(input)).body.data.trackings[0].events).toHaveLength(1);
  });
});

describe('POST /tracking/search', () => {
  function makePerCall(options: Parameters<typeof makeFake>[0] = {}) {
    const made = makeWithResults({ plans: { perCall: true }, ...options });
    const searchNow = (input: object = {}) =>
      made.call('POST', '/tracking/search', { trackingNumber: NUMBER, ...input });
    return { ...made, searchNow };
  }

  it('a number that couriers know → 201 with results, no tracker, no webhook', async () => {
    const { fake, shipment, searchNow } = makePerCall();
    shipment.deliver();
    const { status, body } = await searchNow({ destinationCountryCode: 'USA' });
    expect(status).toBe(201);
    expect(body.data.trackings).toMatchObject([
      { shipment: { statusMilestone: 'delivered', destinationCountryCode: 'US' }, events: [{}] },
    ]);
    expect(body.data.trackings[0]).not.toHaveProperty('tracker');
    expect([fake.trackers, fake.webhooks.pending]).toEqual([[], []]);
  });

  it.each(['cn-post', 'nl-post'])(
    'the courier %s, which cannot be asked at once → no events',
    async (courierCode) => {
      const { shipment, searchNow } = makePerCall();
      shipment.deliver();
      expect((await searchNow({ courierCode })).body.data.trackings[0].events).toEqual([]);
    },
  );

  it('the per-call quota used up → 403 quota_limit_reached; a refused search costs nothing', async () => {
    const { searchNow } = makePerCall({ plans: { perCall: { quota: 1 } } });
    expect(readCode(await searchNow({ originCountryCode: 'XX' }))).toBe('validation_error');
    expect((await searchNow()).status).toBe(201);
    expect(refusal(await searchNow())).toEqual([403, 'quota_limit_reached']);
  });

  it('no per-call plan → 422 no_active_subscription', async () => {
    expect(refusal(await makePerCall({ plans: {} }).searchNow())).toEqual([422, 'no_active_subscription']);
  });
});

describe('GET /couriers', () => {
  it('only the per-call plan → couriers are listed, without fields of the fake; trackers are refused', async () => {
    const { call } = makeFake({ plans: { perShipment: false, perCall: true } });
    const { status, body } = await call('GET', '/couriers');
    expect(status).toBe(200);
    expect(body.data.couriers.map(({ courierCode }) => courierCode)).toContain('fr-post');
    expect(JSON.stringify(body)).not.toContain('supportsSynchronousFetch');
    expect(refusal(await call('GET', '/trackers?page=1&limit=1'))).toEqual([422, 'no_active_subscription']);
  });
});

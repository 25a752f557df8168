import { describe, expect, it } from 'vitest';
import type { FakeTrackingServiceOptions } from '../../../src/testing/index.ts';
import { codeOf, makeFake, NUMBER } from '../make-fake.ts';

function makePerCall(options: FakeTrackingServiceOptions = { plans: { perCall: true } }) {
  const fake = makeFake(options);
  const search = (input: object = {}) =>
    fake.call('POST', '/tracking/search', { trackingNumber: NUMBER, ...input });
  return { ...fake, search };
}

describe('POST /tracking/search', () => {
  it('no per-call subscription → 422 no_active_subscription', async () => {
    const response = await makePerCall({}).search();
    expect([response.status, codeOf(response)]).toEqual([422, 'no_active_subscription']);
  });

  it('a number couriers know → 201 with results and no tracker in them', async () => {
    const { fake, search } = makePerCall();
    fake.shipment(NUMBER).deliver();
    const { status, body } = await search();
    expect(status).toBe(201);
    expect(body.data.trackings[0].events).toHaveLength(1);
    expect(body.data.trackings[0]).not.toHaveProperty('tracker');
  });

  it('unknown fields → ignored', async () => {
    const { search } = makePerCall();
    expect((await search({ courierCodes: ['us-post'], insuredValue: 12 })).status).toBe(201);
  });

  it('a search → creates no tracker and queues no webhook', async () => {
    const { fake, search } = makePerCall();
    fake.shipment(NUMBER).deliver();
    await search();
    expect([fake.trackers, fake.webhooks.pending]).toEqual([[], []]);
  });

  it('a courier that can not be asked synchronously → no events', async () => {
    const { fake, search } = makePerCall();
    fake.shipment(NUMBER).deliver();
    expect((await search({ courierCode: 'cn-post' })).body.data.trackings[0].events).toEqual([]);
  });

  it('the per-call quota used up → 403 quota_limit_reached', async () => {
    const { search } = makePerCall({ plans: { perCall: { quota: 1 } } });
    await search();
    const response = await search();
    expect([response.status, codeOf(response)]).toEqual([403, 'quota_limit_reached']);
  });

  it('no tracking number → 400 missing_mandatory_field', async () => {
    const { call } = makePerCall();
    expect(codeOf(await call('POST', '/tracking/search', {}))).toBe('missing_mandatory_field');
  });

  it('a refused search → costs nothing of the quota', async () => {
    const { search } = makePerCall({ plans: { perCall: { quota: 1 } } });
    await search({ originCountryCode: 'XX' });
    expect((await search()).status).toBe(201);
  });

  it('the play of the options → runs for a searched number as well', async () => {
    const { search } = makePerCall({
      plans: { perCall: true },
      play: 'delivered',
      speed: Number.POSITIVE_INFINITY,
    });
    expect((await search({ courierCode: 'us-post' })).body.data.trackings[0].shipment.statusMilestone).toBe(
      'delivered',
    );
  });
});

describe('GET /couriers', () => {
  it('the list → without what only the fake knows of a courier', async () => {
    const { call } = makeFake();
    const { body } = await call('GET', '/couriers');
    expect(body.data.couriers.map(({ courierCode }) => courierCode)).toContain('fr-post');
    expect(JSON.stringify(body)).not.toContain('supportsSynchronousFetch');
  });

  it('only the per-call plan → couriers are listed, trackers are not', async () => {
    const { call } = makeFake({ plans: { perShipment: false, perCall: true } });
    expect((await call('GET', '/couriers')).status).toBe(200);
    const list = await call('GET', '/trackers?page=1&limit=1');
    expect([list.status, codeOf(list)]).toEqual([422, 'no_active_subscription']);
  });
});

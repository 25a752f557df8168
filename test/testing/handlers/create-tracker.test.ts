import { describe, expect, it } from 'vitest';
import { codeOf, DAY_MS, makeFake, NUMBER, START_MS } from '../make-fake.ts';

describe('POST /trackers', () => {
  it('a new number → 201 and a tracker', async () => {
    const { create } = makeFake();
    const { status, body } = await create({ shipmentReference: 'order 7', clientTrackerId: 'mine' });
    expect(status).toBe(201);
    expect(body).toEqual({
      data: {
        tracker: {
          trackerId: expect.any(String),
          trackingNumber: NUMBER,
          shipmentReference: 'order 7',
          clientTrackerId: 'mine',
          courierCode: [],
          isSubscribed: true,
          isTracked: true,
          createdAt: '2026-03-10T12:00:00.000Z',
        },
      },
    });
  });

  it('a lower-case number → returned in upper case', async () => {
    const { create } = makeFake();
    const { body } = await create({ trackingNumber: 'rr123456785cn' });
    expect(body.data.tracker.trackingNumber).toBe('RR123456785CN');
  });

  it('one courier code as a string → returned as a list', async () => {
    const { create } = makeFake();
    expect((await create({ courierCode: 'us-post' })).body.data.tracker.courierCode).toEqual(['us-post']);
  });

  it('no tracking number → 400 missing_mandatory_field', async () => {
    const { call } = makeFake();
    const response = await call('POST', '/trackers', {});
    expect(response.status).toBe(400);
    expect(response.body).toEqual({
      errors: [{ code: 'missing_mandatory_field', message: expect.stringContaining('trackingNumber') }],
      data: null,
    });
  });

  it.each([
    ['too short', { trackingNumber: 'AB12' }],
    ['too long', { trackingNumber: 'A'.repeat(51) }],
    ['a character that is not allowed', { trackingNumber: 'AB 12345' }],
    ['an ascending digit run', { trackingNumber: '123456789' }],
    ['no string', { trackingNumber: 12_345_678 }],
    ['four courier codes', { courierCode: ['a', 'b', 'c', 'd'] }],
    ['a client tracker id of 101 characters', { clientTrackerId: 'x'.repeat(101) }],
    ['a shipment reference of 101 characters', { shipmentReference: 'x'.repeat(101) }],
    ['a country of four letters', { originCountryCode: 'FRAN' }],
    ['an alpha-2 code of no country', { originCountryCode: 'XX' }],
    ['an alpha-3 code of no country', { destinationCountryCode: 'XXX' }],
    ['an empty post code', { destinationPostCode: '' }],
    ['a post code of 33 characters', { destinationPostCode: '1'.repeat(33) }],
    ['a date that does not exist', { shippingDate: '2026-02-30' }],
    ['no e-mail address', { recipient: { email: 'nobody' } }],
    ['a recipient name of 101 characters', { recipient: { name: 'x'.repeat(101) } }],
    ['a restriction to four couriers', { settings: { restrictTrackingToCourierCode: ['a', 'b', 'c', 'd'] } }],
  ])('%s → 400 validation_error, and no tracker', async (_, input) => {
    const { fake, create } = makeFake();
    const response = await create(input);
    expect(response.status).toBe(400);
    expect(codeOf(response)).toBe('validation_error');
    expect(fake.trackers).toEqual([]);
  });

  it('two broken rules → both are told', async () => {
    const { create } = makeFake();
    const { body } = await create({ clientTrackerId: 'x'.repeat(101), destinationPostCode: '' });
    expect(body.errors).toHaveLength(2);
  });

  it.each(['{', '', 'null,'])('the body %j → 400 parsing_error', async (text) => {
    const { call } = makeFake();
    const response = await call('POST', '/trackers', text);
    expect([response.status, codeOf(response)]).toEqual([400, 'parsing_error']);
  });

  it.each(['null', '[]', '"text"', '7'])('the body %s → 400 validation_error', async (text) => {
    const { call } = makeFake();
    const response = await call('POST', '/trackers', text);
    expect([response.status, codeOf(response)]).toEqual([400, 'validation_error']);
  });

  const dayBefore = (days: number) => new Date(START_MS - days * DAY_MS).toISOString().slice(0, 10);

  it('shipped 180 days ago on the clock of the fake → created', async () => {
    const { create } = makeFake();
    expect((await create({ shippingDate: dayBefore(180) })).status).toBe(201);
  });

  it('shipped 181 days ago on the clock of the fake → 400 shipping_date_outdated', async () => {
    const { create } = makeFake();
    const response = await create({ shippingDate: dayBefore(181) });
    expect([response.status, codeOf(response)]).toEqual([400, 'shipping_date_outdated']);
  });

  it('a date with a zone → its age counts in UTC', async () => {
    const { create } = makeFake();
    expect((await create({ shippingDate: `${dayBefore(181)}T23:00:00-05:00` })).status).toBe(201);
  });

  it('a clock years behind that of the machine → a date of its time is taken', async () => {
    const { create } = makeFake({ now: () => Date.UTC(2001, 0, 10) });
    expect((await create({ shippingDate: '2001-01-09' })).status).toBe(201);
  });

  it('the quota used up → 403 quota_limit_reached, and reuse still works', async () => {
    const { create } = makeFake({ plans: { perShipment: { quota: 1 } } });
    const first = await create();
    const refused = await create({ shipmentReference: 'another' });
    expect([refused.status, codeOf(refused)]).toEqual([403, 'quota_limit_reached']);
    expect((await create()).body.data.tracker.trackerId).toBe(first.body.data.tracker.trackerId);
  });

  it('no per-shipment plan → 422 no_active_subscription', async () => {
    const { create } = makeFake({ plans: { perShipment: false } });
    const response = await create();
    expect([response.status, codeOf(response)]).toEqual([422, 'no_active_subscription']);
  });

  it.each([
    ['a field nobody knows', { insuredValue: 12 }],
    ['a plural of a known field', { courierCodes: ['us-post'], titles: ['a', 'b'] }],
    ['an unknown field of an object', { recipient: { phone: '123' }, settings: { language: 'fr' } }],
  ])('%s → ignored, and the tracker is created', async (_, input) => {
    const { create } = makeFake();
    const { status, body } = await create(input);
    expect([status, body.data.tracker.trackingNumber]).toEqual([201, NUMBER]);
  });
});

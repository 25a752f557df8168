import { describe, expect, test } from 'vitest';
import { STATUSES_NAMED_TWICE } from './exceptions.ts';
import { contractFake, NUMBER } from './support/contract-fake.ts';
import { at } from './support/reach.ts';

describe('PATCH once data is there', () => {
  async function patched(patch: object) {
    const { call, createFetched, fake } = contractFake();
    const id = await createFetched({ courierCode: 'us-post' });
    fake.shipment(NUMBER).addEvent();
    return call('PATCH', `/trackers/${id}`, patch);
  }

  test.each([
    ['courierCode', { courierCode: 'fr-post' }],
    ['destinationCountryCode', { destinationCountryCode: 'US' }],
    ['shippingDate', { shippingDate: '2026-03-01' }],
    ['a free field with a fixed one', { destinationPostCode: '94901', courierCode: 'fr-post' }],
  ])('%s → 400 tracker_not_updatable', async (_field, patch) => {
    const { status, body } = await patched(patch);
    expect([status, at(body, 'errors', 0, 'code')]).toEqual([400, 'tracker_not_updatable']);
  });
});

describe('created or existing', () => {
  const input = { trackingNumber: NUMBER };

  test('POST /trackers twice with one payload → 201 both times, one tracker', async () => {
    const { call } = contractFake();
    const [first, second] = [await call('POST', '/trackers', input), await call('POST', '/trackers', input)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(at(second.body, 'data', 'tracker')).toEqual(at(first.body, 'data', 'tracker'));
  });

  test('POST /trackers/track twice with one payload → documented statuses, one tracker', async () => {
    const { call } = contractFake();
    const first = await call('POST', '/trackers/track', input);
    const second = await call('POST', '/trackers/track', input);
    expect(STATUSES_NAMED_TWICE.trackAgain.statuses).toContain(first.status);
    expect(STATUSES_NAMED_TWICE.trackAgain.statuses).toContain(second.status);
    const ids = [first, second].map(({ body }) => at(body, 'data', 'trackings', 0, 'tracker', 'trackerId'));
    expect(ids[0]).toBe(ids[1]);
  });

  test('existingStatus 200, for a service that answers so → 201, then 200', async () => {
    const { call } = contractFake({ existingStatus: 200 });
    const statuses = [await call('POST', '/trackers', input), await call('POST', '/trackers', input)];
    expect(statuses.map(({ status }) => status)).toEqual([201, 200]);
  });
});

describe('Content-Type', () => {
  const BODIES: readonly (readonly [method: string, path: string, body: unknown])[] = [
    ['POST', '/trackers', { trackingNumber: NUMBER }],
    ['POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]],
    ['POST', '/trackers/track', { trackingNumber: NUMBER }],
    ['PATCH', '/trackers/{id}', { isSubscribed: true }],
    ['POST', '/tracking/search', { trackingNumber: NUMBER }],
  ];

  async function answerTo([method, path, body]: (typeof BODIES)[number], contentType: string | undefined) {
    const { createFetched, fake } = contractFake({ plans: { perCall: true } });
    const url = fake.baseUrl + path.replace('{id}', await createFetched({ courierCode: 'us-post' }));
    const headers = new Headers({ authorization: `Bearer ${fake.apiKey}` });
    if (contentType !== undefined) headers.set('content-type', contentType);
    // Bytes, for text would bring a type of its own.
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    return fake.fetch(url, { method, headers, body: bytes });
  }

  test.each(BODIES)(
    '%s %s without it or as text → 400; as JSON with a charset → taken',
    async (...request) => {
      expect((await answerTo(request, undefined)).status).toBe(400);
      expect((await answerTo(request, 'text/plain')).status).toBe(400);
      expect((await answerTo(request, 'application/json; charset=utf-8')).status).toBeLessThan(300);
    },
  );
});

import { describe, expect, test } from 'vitest';
import { COURIER, PER_CALL_TRACKING } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

const input = { trackingNumber: 'LA680658838NL' };

describe('list', () => {
  test.each([
    ['shown', { data: { couriers: [COURIER] } }],
    ['bare', { data: [COURIER] }],
  ])('the %s form → the couriers', async (_form, body) => {
    const { client } = makeClient({ body });
    expect(await client.couriers.list()).toEqual([COURIER]);
  });

  test('a courier with its code only → parsed', async () => {
    const { client } = makeClient({ body: { data: [{ courierCode: 'us-post' }] } });
    expect(await client.couriers.list()).toEqual([{ courierCode: 'us-post' }]);
  });

  test("one courier without a code, invalidResponse 'throw' → ResponseValidationError that names it", async () => {
    const body = { data: { couriers: [COURIER, { courierName: 'X' }] } };
    const { client } = makeClient({ body }, { invalidResponse: 'throw' });
    expect(await rejectionOf(client.couriers.list())).toMatchObject({
      name: 'ResponseValidationError',
      issues: [{ path: [1, 'courierCode'] }],
    });
  });
});

describe('search', () => {
  test.each([
    ['shown', { data: { trackings: [PER_CALL_TRACKING, PER_CALL_TRACKING] } }],
    ['bare', { data: [PER_CALL_TRACKING, PER_CALL_TRACKING] }],
  ])('the %s form → all results', async (_form, body) => {
    const { client } = makeClient({ status: 201, body });
    expect(await client.tracking.search(input)).toEqual([PER_CALL_TRACKING, PER_CALL_TRACKING]);
  });

  test('nothing found → an empty array', async () => {
    const { client } = makeClient({ status: 201, body: { data: { trackings: [] } } });
    expect(await client.tracking.search(input)).toEqual([]);
  });

  test('no subscription → NoActiveSubscriptionError, one request', async () => {
    const body = { errors: [{ code: 'no_active_subscription' }], data: null };
    const { client, requests } = makeClient({ status: 422, body });
    expect(await rejectionOf(client.tracking.search(input))).toMatchObject({
      name: 'NoActiveSubscriptionError',
      code: 'no_active_subscription',
      status: 422,
    });
    expect(requests).toHaveLength(1);
  });

  test('hints → sent as given', async () => {
    const { client, requests } = makeClient({ body: { data: [] } });
    const hints = {
      ...input,
      courierCode: 'fr-post',
      destinationCountryCode: 'FR',
      destinationPostCode: '75001',
    };
    await client.tracking.search(hints);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual(hints);
  });

  test('a broken rule → RequestValidationError, nothing is sent and nothing is paid', async () => {
    const { client, requests } = makeClient({ body: { data: [] } });
    expect(await rejectionOf(client.tracking.search({ trackingNumber: 'x' }))).toMatchObject({
      name: 'RequestValidationError',
    });
    expect(requests).toHaveLength(0);
  });
});

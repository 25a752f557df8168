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
});

describe('search', () => {
  test.each([
    ['shown', { data: { trackings: [PER_CALL_TRACKING, PER_CALL_TRACKING] } }],
    ['bare', { data: [PER_CALL_TRACKING, PER_CALL_TRACKING] }],
  ])('the %s form → all results', async (_form, body) => {
    const { client } = makeClient({ status: 201, body });
    expect(await client.tracking.search(input)).toEqual([PER_CALL_TRACKING, PER_CALL_TRACKING]);
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

import { expect, test } from 'vitest';
import { COURIER } from '../support/calls.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

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

test('one courier without a code → ResponseValidationError that names it', async () => {
  const { client } = makeClient({ body: { data: { couriers: [COURIER, { courierName: 'X' }] } } });
  expect(await rejectionOf(client.couriers.list())).toMatchObject({
    name: 'ResponseValidationError',
    issues: [{ path: [1, 'courierCode'] }],
  });
});

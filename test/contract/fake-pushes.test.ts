import { createWebhookSender, type FakeTrackingService } from 'tracking-client/testing';
import { expect, test } from 'vitest';
import { contractFake, contractReceiver, NUMBER, SECRET } from './support/contract-fake.ts';

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };

test.each<[string, (fake: FakeTrackingService) => unknown, object]>([
  ['the scenario "delivered"', (fake) => fake.play(NUMBER, 'delivered', AT_ONCE), {}],
  ['the scenario "exception"', (fake) => fake.play(NUMBER, 'exception', AT_ONCE), {}],
  ['the scenario "customs"', (fake) => fake.play(NUMBER, 'customs', AT_ONCE), {}],
  ['a proof of delivery', (fake) => fake.shipment(NUMBER).deliver().proveDelivery(), {}],
  ['many items a request', (fake) => fake.shipment(NUMBER).addEvent().deliver(), { itemsPerRequest: 10 }],
])('%s → pushes that the schemas allow', async (_what, happen, options) => {
  const { fake, createFetched } = contractFake();
  const { target, bodies } = contractReceiver();
  await createFetched({ clientTrackerId: 'order-1042', shipmentReference: 'basket 7' });
  happen(fake);
  await createWebhookSender({ target, secret: SECRET, fake, ...options }).flush();
  expect(bodies).not.toEqual([]);
});

test('shape flat → ids and events at the top', async () => {
  const { fake, createFetched } = contractFake();
  const { target, bodies } = contractReceiver('webhookFlat');
  const trackerId = await createFetched({ clientTrackerId: 'order-1042' });
  fake.shipment(NUMBER).addEvent();
  await createWebhookSender({ target, secret: SECRET, fake, shape: 'flat' }).flush();
  expect(bodies).toMatchObject([{ trackerId, clientTrackerId: 'order-1042' }]);
});

import { createWebhookSender, type FakeTrackingService } from 'tracking-client/testing';
import { expect, test } from 'vitest';
import { makeFake, NUMBER } from '../testing/make-fake.ts';
import { findBreaches } from './support/schemas.ts';

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };
const SECRET = 'whsec-0123456789abcdef';

/** Sends what happens to a tracker as webhooks; returns the bodies and what in them breaks the contract. */
async function push(happen: (fake: FakeTrackingService) => unknown, options: object) {
  const { fake, createId, advance } = makeFake();
  const trackerId = await createId({ clientTrackerId: 'order-1042', shipmentReference: 'basket 7' });
  advance(10_000);
  happen(fake);
  const bodies: unknown[] = [];
  const target = async (request: Request) => {
    const { method, headers } = request;
    expect([method, headers.get('authorization')]).toEqual(['POST', `Bearer ${SECRET}`]);
    expect(headers.get('content-type')).toMatch(/^application\/json\b/);
    bodies.push(await request.json());
    return new Response();
  };
  const report = await createWebhookSender({ target, secret: SECRET, fake, ...options }).flush();
  expect(report).toMatchObject({ items: report.accepted, lost: 0 });
  return { trackerId, bodies };
}

test.each<[string, (fake: FakeTrackingService) => unknown, object]>([
  ['the scenario "delivered"', (fake) => fake.play(NUMBER, 'delivered', AT_ONCE), {}],
  ['the scenario "exception"', (fake) => fake.play(NUMBER, 'exception', AT_ONCE), {}],
  ['the scenario "customs"', (fake) => fake.play(NUMBER, 'customs', AT_ONCE), {}],
  ['a proof of delivery', (fake) => fake.shipment(NUMBER).deliver().proveDelivery(), {}],
  ['many items a request', (fake) => fake.shipment(NUMBER).addEvent().deliver(), { itemsPerRequest: 10 }],
])('%s → pushes that the schemas allow', async (_what, happen, options) => {
  const { bodies } = await push(happen, options);
  expect(bodies).not.toEqual([]);
  expect(bodies.flatMap((body) => findBreaches('webhook', body))).toEqual([]);
});

test('shape flat → ids and events at the top', async () => {
  const { trackerId, bodies } = await push((fake) => fake.shipment(NUMBER).addEvent(), { shape: 'flat' });
  expect(bodies).toMatchObject([{ trackerId, clientTrackerId: 'order-1042' }]);
  expect(bodies.flatMap((body) => findBreaches('webhookFlat', body))).toEqual([]);
});

// test/tracking.e2e-spec.ts
import { randomUUID } from 'node:crypto';
import { Test } from '@nestjs/testing';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { AppModule } from './../src/app.module';
import { OrdersService } from './../src/orders.service';

it('webhooks twice and out of order → the newest status', async () => {
  process.env.TRACKING_WEBHOOK_SECRET = 'whsec';
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const module = await builder.overrideProvider(TrackingClient).useValue(client).compile();
  const app = module.createNestApplication();
  await app.listen(0);

  const orders = app.get(OrdersService);
  const orderId = randomUUID();
  await orders.ship(orderId, 'RR123456785CN');
  // The last scan was noted late, so the parcel stays delivered.
  fake.shipment('RR123456785CN').addEvent().deliver().addEvent({ statusMilestone: 'out_for_delivery' });
  const target = `${await app.getUrl()}/webhooks`;
  // This seed sends the oldest webhook last.
  const sending = { duplicates: 1, shuffle: true, seed: 2 };
  await createWebhookSender({ target, secret: 'whsec', fake, ...sending }).flush();

  expect(await orders.status(orderId)).toBe('delivered');
  await app.close();
});

// test/tracking.e2e-spec.ts
import { randomUUID } from 'node:crypto';
import { Test } from '@nestjs/testing';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { DataSource } from 'typeorm';
import { AppModule } from './../src/app.module';

it('webhooks twice and out of order → the newest status', async () => {
  process.env.TRACKING_WEBHOOK_SECRET = 'whsec';
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const module = await builder.overrideProvider(TrackingClient).useValue(client).compile();
  const app = module.createNestApplication();
  await app.listen(0);

  const database = app.get(DataSource);
  const orderId = randomUUID();
  await database.query('INSERT INTO orders (id) VALUES ($1)', [orderId]);
  await client.trackers.create({ trackingNumber: 'RR123456785CN', clientTrackerId: orderId });
  // The last scan was noted late, so the parcel stays delivered.
  fake.shipment('RR123456785CN').addEvent().deliver().addEvent({ statusMilestone: 'out_for_delivery' });
  const target = `${await app.getUrl()}/webhooks`;
  // This seed sends the oldest webhook last.
  const sending = { duplicates: 1, shuffle: true, seed: 2 };
  await createWebhookSender({ target, secret: 'whsec', fake, ...sending }).flush();

  const [order] = await database.query('SELECT status FROM orders WHERE id = $1', [orderId]);
  expect(order.status).toBe('delivered');
  await app.close();
});

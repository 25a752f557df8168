// test/tracking.e2e-spec.ts
import { Test } from '@nestjs/testing';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { AppModule } from './../src/app.module';
import { WebhooksController } from './../src/webhooks.controller';

it('webhooks twice and out of order → the newest status', async () => {
  process.env.TRACKING_WEBHOOK_SECRET = 'whsec';
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const module = await builder.overrideProvider(TrackingClient).useValue(client).compile();
  const app = module.createNestApplication();
  await app.listen(0);

  await client.trackers.create({ trackingNumber: 'RR123456785CN' });
  fake.play('RR123456785CN', 'delivered', { speed: Infinity });
  const target = `${await app.getUrl()}/webhooks`;
  await createWebhookSender({ target, secret: 'whsec', fake, duplicates: 1, shuffle: true }).flush();

  expect(app.get(WebhooksController).latest.get('RR123456785CN')?.statusMilestone).toBe('delivered');
  await app.close();
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';

const SECRET = 'whsec-nest';
const NUMBER = 'RR123456785CN';

const fake = createFakeTrackingService();
let server;
let app;
let shipments;

before(async () => {
  server = await fake.listen();
  const environment = {
    TRACKING_BASE_URL: server.url,
    TRACKING_API_KEY: fake.apiKey,
    TRACKING_WEBHOOK_SECRET: SECRET,
  };
  Object.assign(process.env, environment, { PORT: '0' });
  const { AppModule } = await import('../dist/app.module.js');
  const { ShipmentsService } = await import('../dist/shipments.service.js');
  app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  shipments = app.get(ShipmentsService);
});

after(async () => {
  await server?.close();
});

test('a service that ships by the injected client → the tracker is there, one client for all', async () => {
  await shipments.ship('order-1', NUMBER);
  assert.equal(fake.trackers[0].clientTrackerId, 'order-1');
  assert.equal(app.get(TrackingClient), app.get(TrackingClient));
});

test('webhooks through the controller, three times and out of order → the newest status is kept', async () => {
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  const target = `${await app.getUrl()}/webhooks`;
  const sender = createWebhookSender({ target, secret: SECRET, fake, duplicates: 2, shuffle: true });
  assert.equal(await sender.probe(), true);
  const report = await sender.flush();
  assert.deepEqual([report.lost, new Set(report.sent.map(({ status }) => status))], [0, new Set([200])]);
  assert.equal(shipments.latest.get(NUMBER).statusMilestone, 'delivered');
});

test('a shutdown while an event is handled → handled and answered with 200', {
  timeout: 30_000,
}, async () => {
  const steps = [];
  const started = new Promise((resolve) => {
    shipments.save = async () => {
      resolve();
      await new Promise((done) => setTimeout(done, 200));
      steps.push('handled');
    };
  });
  const answer = fetch(`${await app.getUrl()}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
    body: '{"trackerId":"t1","events":[{"eventId":"last"}]}',
  });
  await started;
  await app.close();
  steps.push('closed');
  assert.equal((await answer).status, 200);
  assert.deepEqual(steps, ['handled', 'closed']);
});

test('the program → listens, and ends with SIGTERM', { timeout: 30_000 }, async () => {
  const program = spawn(process.execPath, ['dist/main.js'], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: program.stdout })) if (line.startsWith('listens')) break;
  program.kill('SIGTERM');
  await once(program, 'exit');
});

import { expect, test } from 'vitest';
import { makeFake, NUMBER } from '../testing/make-fake.ts';

test('a push that failed, one that was accepted and one that waits → the documented file, newest first', async () => {
  const { call, createId, fake, advance } = makeFake();
  const trackerId = await createId({ clientTrackerId: 'order-1' });
  const outcomes = [
    { status: 500, succeeded: false, responseBody: 'down' },
    { status: 200, succeeded: true, responseHeaders: { 'x-receiver': 'shop' }, url: 'https://shop.test/' },
  ];
  for (const outcome of outcomes) {
    fake.shipment(NUMBER).addEvent();
    fake.webhooks.record(fake.webhooks.take(), outcome);
    advance(3_600_000);
  }
  fake.shipment(NUMBER).addEvent(); // Its push still waits, so it is not in the file.
  const { body, headers } = await call('GET', `/trackers/${trackerId}/webhook-history/download`);
  const filename = `webhook-history-${NUMBER}-20260310.json`;
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${filename}"`);
  expect(body.metadata).toEqual({
    trackingNumber: NUMBER,
    trackerId,
    clientTrackerId: 'order-1',
    webhookUrl: 'https://shop.test/',
    lastSuccessfulPushAt: '2026-03-10T13:00:00.000Z',
    lastFailedPushAt: '2026-03-10T12:00:00.000Z',
  });
  expect(body.webhooks).toMatchObject([
    {
      status: 'success',
      pushTimestamp: '2026-03-10T13:00:00.000Z',
      responseStatusCode: '200',
      responseHeaders: { 'x-receiver': 'shop' },
    },
    {
      status: 'failed',
      pushTimestamp: '2026-03-10T12:00:00.000Z',
      responseStatusCode: '500',
      responseBody: 'down',
    },
  ]);
  const mine = await call('GET', '/trackers/order-1/webhook-history/download?searchBy=clientTrackerId');
  expect(mine.body).toEqual(body);
});

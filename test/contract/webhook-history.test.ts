import { expect, test, vi } from 'vitest';
import { at, contractFake, HOUR_MS, NUMBER } from './support/contract-fake.ts';

test('a push that failed, one that was accepted and one that waits → the documented file, newest first', async () => {
  const { call, createFetched, fake } = contractFake();
  const trackerId = await createFetched({ clientTrackerId: 'order-1' });
  const outcomes = [
    { status: 500, succeeded: false, responseBody: 'down' },
    { status: 200, succeeded: true, responseHeaders: { 'x-receiver': 'shop' }, url: 'https://shop.test/' },
  ];
  for (const outcome of outcomes) {
    fake.shipment(NUMBER).addEvent();
    fake.webhooks.record(fake.webhooks.take(), outcome);
    vi.advanceTimersByTime(HOUR_MS);
  }
  fake.shipment(NUMBER).addEvent(); // Its push still waits, so it is not in the file.
  const { body, headers } = await call('GET', `/trackers/${trackerId}/webhook-history/download`);
  const filename = `webhook-history-${NUMBER}-20260310.json`;
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${filename}"`);
  expect(at(body, 'metadata')).toEqual({
    trackingNumber: NUMBER,
    trackerId,
    clientTrackerId: 'order-1',
    webhookUrl: 'https://shop.test/',
    lastSuccessfulPushAt: '2026-03-10T13:00:10.000Z',
    lastFailedPushAt: '2026-03-10T12:00:10.000Z',
  });
  expect(at(body, 'webhooks')).toMatchObject([
    {
      status: 'success',
      pushTimestamp: '2026-03-10T13:00:10.000Z',
      responseStatusCode: '200',
      responseHeaders: { 'x-receiver': 'shop' },
    },
    {
      status: 'failed',
      pushTimestamp: '2026-03-10T12:00:10.000Z',
      responseStatusCode: '500',
      responseBody: 'down',
    },
  ]);
  const mine = await call('GET', '/trackers/order-1/webhook-history/download?searchBy=clientTrackerId');
  expect(mine.body).toEqual(body);
});

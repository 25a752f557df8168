import { createWebhookSender } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { advance, contractFake, HOUR_MS, NUMBER } from './support/contract-fake.ts';
import { at, fieldsAt } from './support/reach.ts';
import { contractReceiver, SECRET } from './support/receiver.ts';

/** Two pushes an hour apart: the first is refused with 500, the second taken. */
async function twoPushes() {
  const service = contractFake();
  const { target, received } = contractReceiver((count) =>
    count === 1
      ? new Response('down', { status: 500 })
      : Response.json({ success: true }, { headers: { 'x-receiver': 'shop' } }),
  );
  const id = await service.createFetched({ clientTrackerId: 'order-1' });
  const sender = createWebhookSender({ target, secret: SECRET, fake: service.fake });
  for (const eventId of ['first', 'second']) {
    service.fake.shipment(NUMBER).addEvent({ eventId });
    await sender.flush();
    await advance(HOUR_MS);
  }
  const history = () => service.call('GET', `/trackers/${id}/webhook-history/download`);
  return { ...service, id, received, history };
}

describe('webhook history of the fake', () => {
  test('two pushes → newest first, each as it went', async () => {
    const { body } = await (await twoPushes()).history();
    expect(fieldsAt(body, 'status', 'webhooks')).toEqual(['success', 'failed']);
    expect(fieldsAt(body, 'responseStatusCode', 'webhooks')).toEqual(['200', '500']);
    expect(fieldsAt(body, 'pushTimestamp', 'webhooks').map((time) => Date.parse(String(time)))).toEqual([
      Date.UTC(2026, 2, 10, 13, 0, 10),
      Date.UTC(2026, 2, 10, 12, 0, 10),
    ]);
  });

  test('two pushes at one instant → the later one first', async () => {
    const { call, createFetched, fake } = contractFake();
    const { target } = contractReceiver();
    const id = await createFetched();
    const sender = createWebhookSender({ target, secret: SECRET, fake });
    fake.shipment(NUMBER).addEvent({ eventId: 'first' }).addEvent({ eventId: 'second' });
    await sender.flush();
    const { body } = await call('GET', `/trackers/${id}/webhook-history/download`);
    const pushed = fieldsAt(body, 'requestBody', 'webhooks');
    const eventIds = pushed.map((push) => at(push, 'trackings', 0, 'events', 0, 'eventId'));
    expect(eventIds).toEqual(['second', 'first']);
  });

  test('two pushes → request and response are those of the receiver', async () => {
    const { history, received } = await twoPushes();
    const { body } = await history();
    expect(fieldsAt(body, 'requestBody', 'webhooks')).toEqual(received.map((push) => push.body).toReversed());
    expect(fieldsAt(body, 'responseBody', 'webhooks')).toEqual([{ success: true }, 'down']);
    expect(at(body, 'webhooks', 0, 'responseHeaders')).toMatchObject({ 'x-receiver': 'shop' });
  });

  test('two pushes → metadata names the tracker and the last of each kind', async () => {
    const { history, id } = await twoPushes();
    const { body } = await history();
    expect(at(body, 'metadata')).toMatchObject({
      trackingNumber: NUMBER,
      trackerId: id,
      clientTrackerId: 'order-1',
      lastSuccessfulPushAt: at(body, 'webhooks', 0, 'pushTimestamp'),
      lastFailedPushAt: at(body, 'webhooks', 1, 'pushTimestamp'),
    });
  });

  test('downloaded on 10 March 2026 → the documented file name', async () => {
    const { headers } = await (await twoPushes()).history();
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="webhook-history-${NUMBER}-20260310.json"`,
    );
  });

  test('searchBy clientTrackerId → the same history', async () => {
    const { call, history } = await twoPushes();
    const { body } = await call('GET', '/trackers/order-1/webhook-history/download?searchBy=clientTrackerId');
    expect(body).toEqual((await history()).body);
  });

  test('a receiver that cannot be reached → failed, without a status', async () => {
    const { fake, call, createFetched } = contractFake();
    const id = await createFetched();
    fake.shipment(NUMBER).addEvent();
    const target = () => Promise.reject(new TypeError('fetch failed'));
    await createWebhookSender({ target, secret: SECRET, fake }).flush();
    const { body } = await call('GET', `/trackers/${id}/webhook-history/download`);
    expect(at(body, 'webhooks', 0)).toMatchObject({ status: 'failed', responseStatusCode: null });
  });
});

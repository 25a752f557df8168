import { createWebhookSender } from 'tracking-client/testing';
import { MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';
import { describe, expect, test, vi } from 'vitest';
import { contractFake, NUMBER } from './support/contract-fake.ts';
import { at } from './support/reach.ts';
import { contractReceiver, SECRET } from './support/receiver.ts';

describe('a resend of the fake', () => {
  test('three events in two pushes → totalResent 3', async () => {
    const { client, createFetched, fake } = contractFake();
    const id = await createFetched();
    fake.shipment(NUMBER).addEvent({}, {}).addEvent();
    await createWebhookSender({ target: contractReceiver().target, secret: SECRET, fake }).flush();
    expect(await client.trackers.resendWebhookEvents(id)).toEqual({ totalResent: 3 });
  });

  test('nothing was pushed → totalResent 0', async () => {
    const { client, createFetched } = contractFake();
    expect(await client.trackers.resendWebhookEvents(await createFetched())).toEqual({ totalResent: 0 });
  });

  test('a resend → the same objects keep their messageIds', async () => {
    const { client, createFetched, fake } = contractFake();
    const { target, received } = contractReceiver();
    const id = await createFetched();
    fake.shipment(NUMBER).addEvent().proveDelivery();
    const sender = createWebhookSender({ target, secret: SECRET, fake });
    await sender.flush();
    await client.trackers.resendWebhookEvents(id);
    await sender.flush();
    const ids = received.map(({ body }) => at(body, 'trackings', 0, 'metadata', 'messageId'));
    expect(ids).toHaveLength(4);
    expect(ids.slice(2)).toEqual(ids.slice(0, 2));
  });

  test('a proof of delivery, resent → handled once', async () => {
    const { client, createFetched, fake } = contractFake();
    const { target, received } = contractReceiver();
    const id = await createFetched();
    fake.shipment(NUMBER).proveDelivery();
    const sender = createWebhookSender({ target, secret: SECRET, fake });
    await sender.flush();
    await client.trackers.resendWebhookEvents(id);
    await sender.flush();
    const items = received.map(({ body }) => Object(at(body, 'trackings', 0)));
    expect(items).toHaveLength(2);
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    const onProofOfDelivery = vi.fn();
    for (const item of items) await inbox.process({ trackings: [item] }, { onProofOfDelivery });
    expect(onProofOfDelivery).toHaveBeenCalledOnce();
  });
});

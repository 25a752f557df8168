import { createWebhookSender } from 'tracking-client/testing';
import { MemoryDedupeStore, type ProofOfDelivery, WebhookInbox } from 'tracking-client/webhooks';
import { describe, expect, test } from 'vitest';
import { buildProofOfDeliveryKey } from '../../src/events/keys.ts';
import { contractFake, NUMBER } from './support/contract-fake.ts';
import { at } from './support/reach.ts';
import { contractReceiver, SECRET } from './support/receiver.ts';
import { PROOF_ITEM } from './support/samples.ts';
import { stubClient } from './support/stub-client.ts';

describe('an accepted resend', () => {
  test.each([
    ['201 without a body', { status: 201 }],
    ['204', { status: 204 }],
    ['201 {}', { status: 201, body: {} }],
    ['200 data null', { status: 200, body: { data: null } }],
    ['201 without a summary', { status: 201, body: { data: {} } }],
    ['202 with an empty summary', { status: 202, body: { data: { summary: {} } } }],
    ['201 that is no JSON', { status: 201, body: 'Created', headers: { 'content-type': 'text/plain' } }],
  ])('%s → resolves without a total, sent once', async (_name, answer) => {
    const { client, requests } = stubClient(answer, { retry: {} });
    const { totalResent } = await client.trackers.resendWebhookEvents('t1');
    expect(totalResent).toBeUndefined();
    expect(requests).toHaveLength(1);
  });
});

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
});

describe('a proof of delivery, whatever its messageId', () => {
  const { data, metadata, tracker } = PROOF_ITEM;
  const withMessageId = (messageId: string) => ({ ...PROOF_ITEM, metadata: { ...metadata, messageId } });

  /** How many proofs of some webhooks are handled, by one inbox. */
  async function handledOf(...items: readonly object[]): Promise<number> {
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    let handled = 0;
    const onProofOfDelivery = () => {
      handled += 1;
    };
    for (const item of items) await inbox.process({ trackings: [item] }, { onProofOfDelivery });
    return handled;
  }

  test('sent again with a new messageId → handled once', async () => {
    expect(await handledOf(withMessageId('a'), withMessageId('b'), withMessageId('c'))).toBe(1);
  });

  test('other content under the same messageId → handled, too', async () => {
    const content = { ...data.content, downloadUrl: 'https://example.test/other.pdf' };
    expect(await handledOf(PROOF_ITEM, { ...PROOF_ITEM, data: { ...data, content } })).toBe(2);
  });

  test('first unavailable, then found → both are handled', async () => {
    const unavailable = { status: 'unavailable', courier: 'us-post', content: null };
    expect(await handledOf({ ...PROOF_ITEM, data: unavailable }, PROOF_ITEM)).toBe(2);
  });

  test('the same content of two trackers → both are handled', async () => {
    const other = { ...PROOF_ITEM, tracker: { ...tracker, trackerId: 't2' } };
    expect(await handledOf(PROOF_ITEM, other)).toBe(2);
  });

  test('two messageIds → one key', () => {
    const keys = ['a', 'b'].map((messageId) => {
      const proof: ProofOfDelivery = { kind: 'proofOfDelivery', ...withMessageId(messageId) };
      return buildProofOfDeliveryKey(proof);
    });
    expect(new Set(keys).size).toBe(1);
  });

  test('the fake’s resend through its sender → handled once', async () => {
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
    expect(await handledOf(...items)).toBe(1);
  });
});

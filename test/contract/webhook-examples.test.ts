import { parseWebhook } from 'tracking-client/webhooks';
import { describe, expect, test } from 'vitest';
import * as samples from './support/samples.ts';

describe('documented webhooks through the parser', () => {
  test('enveloped, tracking/events → one message with every field of the webhook', () => {
    const { messages, rejected, mismatched } = parseWebhook(JSON.stringify(samples.ENVELOPED_WEBHOOK));
    expect(messages).toEqual([{ kind: 'events', ...samples.EVENTS_ITEM }]);
    expect([rejected, mismatched]).toEqual([[], []]);
  });

  test('flat → one message with the same ids and events', () => {
    const { messages, rejected } = parseWebhook(JSON.stringify(samples.FLAT_WEBHOOK));
    const { trackerId, clientTrackerId, events } = samples.FLAT_WEBHOOK;
    expect(messages).toMatchObject([{ kind: 'events', tracker: { trackerId, clientTrackerId }, events }]);
    expect(rejected).toEqual([]);
  });

  test.each([
    ['found', samples.PROOF_ITEM.data],
    ['unavailable', { status: 'unavailable', courier: 'us-post', content: null }],
  ])('proof of delivery, %s → one proof, no events', (_status, data) => {
    const { messages, mismatched } = parseWebhook({ trackings: [{ ...samples.PROOF_ITEM, data }] });
    expect(messages).toEqual([{ kind: 'proofOfDelivery', ...samples.PROOF_ITEM, data }]);
    expect(mismatched).toEqual([]);
  });

  test('a shipment with every null → no mismatch', () => {
    const item = { ...samples.EVENTS_ITEM, shipment: samples.EMPTY_SHIPMENT, events: [samples.BARE_EVENT] };
    expect(parseWebhook({ trackings: [item] }).mismatched).toEqual([]);
  });

  test('the request body of a history entry → parses like the push it was', () => {
    const [entry] = samples.HISTORY.webhooks;
    expect(parseWebhook(entry?.requestBody).messages).toHaveLength(1);
  });
});

import { type Tracker, TrackingClient } from 'tracking-client';
import {
  buildTracker,
  buildWebhookMessage,
  createFakeTrackingService,
  createWebhookSender,
  type FakeServer,
  type FakeTrackingService,
  type RecordedRequest,
} from 'tracking-client/testing';
import { parseWebhook } from 'tracking-client/webhooks';

export async function play(): Promise<number> {
  const fake: FakeTrackingService = createFakeTrackingService({
    plans: { perCall: true },
    limitWindow: 'sliding',
  });
  await using server: FakeServer = await fake.listen();
  const client = new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey });
  const direct = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  fake.fail('trackers.create', { status: 429, retryAfterMs: 1_000 });
  fake.fail('*', { kind: 'commitThenDrop', times: 2 });
  fake.play('LA680658838NL', 'delivered').addEvent({ statusMilestone: 'exception' }).stopTracking();
  const requests: readonly RecordedRequest[] = fake.requests;
  const sender = createWebhookSender({ target: 'http://127.0.0.1:3000/', fake, secret: 'secret' });
  const { sent, lost } = await sender.flush();
  console.log(client.rateLimits(), direct, lost, sent[0]?.status, requests[0]?.status);
  return server.port;
}

export const tracker: Tracker = buildTracker({ trackingNumber: 'LA680658838NL' });
export const { messages } = parseWebhook(buildWebhookMessage());

export function misspelt(fake: FakeTrackingService, server: FakeServer): void {
  // @ts-expect-error -- `uri`
  console.log(server.uri);
  // @ts-expect-error -- `trackers.remove`
  fake.fail('trackers.remove', { status: 500 });
  // @ts-expect-error -- `trackingNumbr`
  buildTracker({ trackingNumbr: 'LA680658838NL' });
}

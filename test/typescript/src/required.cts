import client = require('tracking-client');
import postgres = require('tracking-client/postgres');
import redis = require('tracking-client/redis');
import testing = require('tracking-client/testing');
import webhooks = require('tracking-client/webhooks');

const fake = testing.createFakeTrackingService();

export function makeClient(connection: redis.RedisClient): client.TrackingClient {
  const limiter = new redis.RedisLimiter({ redis: connection });
  const { baseUrl, apiKey, fetch } = fake;
  return new client.TrackingClient({ baseUrl, apiKey, fetch, limiter });
}

export function makeInbox(database: postgres.Queryable): webhooks.WebhookInbox {
  return new webhooks.WebhookInbox({ store: new postgres.PostgresDedupeStore({ pool: database }) });
}

export async function readMilestone(): Promise<client.StatusMilestone | null | undefined> {
  const { shipment } = await new client.TrackingClient().trackers.results('id');
  // @ts-expect-error -- `statusMileStone`
  console.log(shipment?.statusMileStone);
  return shipment?.statusMilestone;
}

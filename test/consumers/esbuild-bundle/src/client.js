import { TrackingClient } from 'tracking-client';
import { PostgresDedupeStore } from 'tracking-client/postgres';
import { RedisLimiter } from 'tracking-client/redis';
import { createFakeTrackingService } from 'tracking-client/testing';

const fake = createFakeTrackingService();
const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
const { trackingNumber } = await client.trackers.create({ trackingNumber: 'LA680658838NL' });
console.log(trackingNumber, typeof RedisLimiter, typeof PostgresDedupeStore);

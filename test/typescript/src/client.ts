import {
  type ApiError,
  type ApiPromise,
  type BulkOutcome,
  type CreateManyOptions,
  type EndpointName,
  type Hooks,
  isTrackingError,
  type Logger,
  NotFoundError,
  type PollUpdate,
  RequestValidationError,
  type ResultsManyItem,
  type ResultsManyOptions,
  type StatusMilestone,
  TokenBucketLimiter,
  type Tracker,
  type TrackerInput,
  type Tracking,
  TrackingClient,
  type TrackingClientOptions,
  TrackingError,
  trackerSchema,
  type ValidationIssue,
} from 'tracking-client';
import { z } from 'zod';

const hooks: Hooks = { onRetry: ({ retryAfterMs, error }) => report(retryAfterMs, error.message) };
const logger: Logger = console;
const limiter: TrackingClientOptions['limiter'] = new TokenBucketLimiter();
const options: TrackingClientOptions = {
  baseUrl: new URL('https://tracking.test/public/v1'),
  apiKey: async () => 'key',
  fetch: globalThis.fetch,
  hooks,
  logger,
  limiter,
  rateLimit: { limits: { 'trackers.create': 5 } },
};
const client = new TrackingClient(options);

function report(...values: (string | number | boolean | null | undefined)[]): void {
  console.log(...values);
}

export async function readEveryResult(signal: AbortSignal): Promise<void> {
  const input: TrackerInput = { trackingNumber: 'LA680658838NL', courierCode: ['us-post'] };
  const creation: ApiPromise<Tracker> = client.trackers.create(input, { signal, priority: 'background' });
  const { data, response, requestId, rateLimit, attempts } = await creation.withResponse();
  report(data.trackerId, response.headers.get('date'), requestId, rateLimit?.limit, attempts);
  const { trackers, hasMore } = await client.trackers.list({ page: 1, limit: 100, sort: -1 });
  report(trackers[0]?.trackingNumber, hasMore);
  for await (const tracker of client.trackers.listAll()) report(tracker.clientTrackerId, tracker.isTracked);
  const bulk = await client.trackers.createBulk([input], { retryAmbiguous: true });
  report(bulk.status, bulk.data?.[0]?.itemStatus, bulk.summary?.totalCreated);
  const tracking: Tracking = await client.trackers.track(input);
  const milestone: StatusMilestone | null | undefined = tracking.shipment?.statusMilestone;
  report(milestone, tracking.shipment?.delivery?.aiPredictiveDeliveryDate === undefined);
  const renamed = await client.trackers.update(
    'order-1',
    { isSubscribed: false },
    { searchBy: 'clientTrackerId' },
  );
  report(renamed.isSubscribed, (await client.trackers.get('id')).shipmentReference);
  const [first] = await client.trackers.resultsByTrackingNumber('LA680658838NL');
  report(first?.tracker?.trackerId, (await client.trackers.results('id')).events[0]?.occurrenceDatetime);
  report((await client.trackers.resendWebhookEvents('id')).totalResent);
  report((await client.trackers.webhookHistory('id')).webhooks?.length);
  report((await client.tracking.search({ trackingNumber: 'LA680658838NL' }))[0]?.events[0]?.eventId);
  report((await client.couriers.list())[0]?.courierCode);
  const schema = z.object({ trackers: z.array(trackerSchema), total: z.coerce.number() });
  const later = schema.parse(await client.request({ method: 'GET', path: '/later' }));
  const known: Tracker | undefined = later.trackers[0];
  report(later.total, known?.trackerId);
  report(client.rateLimits()['couriers.list'].inUse);
}

export async function pollAndImport(inputs: Iterable<TrackerInput>): Promise<void> {
  for await (const update of client.trackers.poll('id', { intervalMs: 60_000 })) {
    const { newEvents, stopped, readAt }: PollUpdate = update;
    report(newEvents[0]?.statusCode, stopped, readAt);
  }
  for await (const update of client.trackers.pollMany(['id'], { intervalMs: ({ poll }) => poll * 60_000 })) {
    if (update.error !== undefined) report(update.id, update.error.message);
    else report(update.id, update.tracking?.shipment?.statusCategory);
  }
  const many: ResultsManyOptions = { searchBy: 'clientTrackerId', concurrency: 5 };
  for await (const item of client.trackers.resultsMany(new Set(['id']), many)) {
    const { id, error, tracking, stopped, readAt }: ResultsManyItem = item;
    if (error === undefined) report(id, tracking?.events.length, stopped, readAt);
    else report(id, error.message);
  }
  const settings: CreateManyOptions = { chunkSize: 50, onProgress: ({ created }) => report(created) };
  const creation = client.trackers.createMany(inputs, settings);
  for await (const outcome of creation) {
    const { index, status, tracker, errors }: BulkOutcome = outcome;
    report(index, status, tracker?.trackerId, errors?.[0]?.code);
  }
  report(creation.summary().created);
  const last = await client.withOptions({ retry: false }).trackers.waitUntilStopped('id');
  report(last?.events.length);
}

export function explain(error: unknown): readonly ValidationIssue[] {
  if (isTrackingError(error, 'tracker_conflict')) report(error.code satisfies 'tracker_conflict');
  if (error instanceof NotFoundError)
    report((error satisfies ApiError).status, error.headers.get('retry-after'));
  if (error instanceof RequestValidationError) return error.issues;
  if (error instanceof TrackingError) report(error.message);
  return [];
}

export const limits: Record<string, number> = Object.fromEntries(
  (['couriers.list'] satisfies EndpointName[]).map((name) => [name, 1]),
);

export function misspelt(tracker: Tracker, tracking: Tracking): void {
  // @ts-expect-error -- `trackerID`
  report(tracker.trackerID);
  // @ts-expect-error -- `statusMileStone`
  report(tracking.shipment?.statusMileStone);
  // @ts-expect-error -- `trackerID`
  report(trackerSchema.parse(tracker).trackerID);
  // @ts-expect-error -- `courierCodes`
  void client.trackers.create({ trackingNumber: 'LA680658838NL', courierCodes: ['us-post'] });
  // @ts-expect-error -- `timeout`
  void new TrackingClient({ timeout: 5 });
}

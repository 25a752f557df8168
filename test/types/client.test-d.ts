import { expectTypeOf, test, vi } from 'vitest';
import type {
  ApiPromise,
  BucketSnapshot,
  BulkResult,
  Courier,
  CourierCheck,
  CourierProblem,
  EndpointName,
  FindCouriersOptions,
  PerCallTracking,
  PollOnceOptions,
  PollUpdate,
  ResendResult,
  ResultsManyItem,
  Tracker,
  TrackerPage,
  TrackerRequestOptions,
  Tracking,
  TrackingError,
  WebhookHistory,
  WithResponse,
} from '../../src/index.ts';
import { TrackingClient } from '../../src/index.ts';

const client = new TrackingClient({ baseUrl: 'https://host.test/v1', apiKey: 'key' });
const input = { trackingNumber: 'LA680658838NL' };

test('every method → resolves to its own type', () => {
  expectTypeOf(client.trackers.create(input)).toEqualTypeOf<ApiPromise<Tracker>>();
  expectTypeOf(client.trackers.list()).toEqualTypeOf<ApiPromise<TrackerPage>>();
  expectTypeOf(client.trackers.listAll()).toExtend<AsyncIterable<Tracker>>();
  expectTypeOf(client.trackers.createBulk([input])).toEqualTypeOf<ApiPromise<BulkResult>>();
  expectTypeOf(client.trackers.track(input)).toEqualTypeOf<ApiPromise<Tracking>>();
  expectTypeOf(client.trackers.get('t')).toEqualTypeOf<ApiPromise<Tracker>>();
  expectTypeOf(client.trackers.update('t', { isSubscribed: false })).toEqualTypeOf<ApiPromise<Tracker>>();
  expectTypeOf(client.trackers.resultsByTrackingNumber('n')).toEqualTypeOf<ApiPromise<Tracking[]>>();
  expectTypeOf(client.trackers.results('t')).toEqualTypeOf<ApiPromise<Tracking>>();
  expectTypeOf(client.trackers.resendWebhookEvents('t')).toEqualTypeOf<ApiPromise<ResendResult>>();
  expectTypeOf(client.trackers.webhookHistory('t')).toEqualTypeOf<ApiPromise<WebhookHistory>>();
  expectTypeOf(client.tracking.search(input)).toEqualTypeOf<ApiPromise<PerCallTracking[]>>();
  expectTypeOf(client.couriers.list()).toEqualTypeOf<ApiPromise<Courier[]>>();
});

test('every endpoint of the table → a method of the same name', () => {
  type Path<Resource extends 'trackers' | 'tracking' | 'couriers'> =
    `${Resource}.${Extract<keyof TrackingClient[Resource], string>}`;
  expectTypeOf<EndpointName>().toExtend<Path<'trackers'> | Path<'tracking'> | Path<'couriers'>>();
  expectTypeOf(client.rateLimits()).toEqualTypeOf<Record<EndpointName, BucketSnapshot>>();
});

test('an awaited call → the data; withResponse → the data with the response', () => {
  expectTypeOf<Awaited<ApiPromise<Tracker>>>().toEqualTypeOf<Tracker>();
  expectTypeOf(client.trackers.get('t').withResponse()).resolves.toEqualTypeOf<WithResponse<Tracker>>();
  expectTypeOf(client.trackers.get('t')).toExtend<Promise<Tracker>>();
});

test('polls → updates of one type', () => {
  expectTypeOf(client.trackers.pollOnce('t')).toEqualTypeOf<Promise<PollUpdate>>();
  expectTypeOf(client.trackers.poll('t')).toExtend<AsyncIterable<PollUpdate>>();
  expectTypeOf<Awaited<ReturnType<typeof client.trackers.pollOnce>>['tracking']>().toEqualTypeOf<
    Tracking | undefined
  >();
  expectTypeOf<PollUpdate['readAt']>().toEqualTypeOf<string>();
  expectTypeOf(client.trackers.pollOnce).toBeCallableWith('t', {
    knownKeys: new Set<string>(),
    searchBy: 'clientTrackerId',
    priority: 'interactive',
    retry: false,
    signal: new AbortController().signal,
  });
  expectTypeOf<PollOnceOptions>().toExtend<TrackerRequestOptions>();
  // @ts-expect-error -- an option of `poll`
  void client.trackers.pollOnce('t', { intervalMs: 60_000 });
  // @ts-expect-error -- keys are strings
  void client.trackers.pollOnce('t', { knownKeys: [1] });
});

test('resultsMany → an error, or results with their time', async () => {
  for await (const item of client.trackers.resultsMany(['t'])) {
    expectTypeOf(item).toEqualTypeOf<ResultsManyItem>();
    expectTypeOf(item.id).toEqualTypeOf<string>();
    expectTypeOf(item.tracking).toEqualTypeOf<Tracking | undefined>();
    if (item.error === undefined) {
      expectTypeOf(item.stopped).toEqualTypeOf<boolean>();
      expectTypeOf(item.readAt).toEqualTypeOf<string>();
    } else {
      expectTypeOf(item.error).toEqualTypeOf<TrackingError>();
      expectTypeOf(item.readAt).toEqualTypeOf<undefined>();
    }
  }
  async function* ids() {
    yield 't';
  }
  expectTypeOf(client.trackers.resultsMany).toBeCallableWith(ids(), {
    searchBy: 'clientTrackerId',
    concurrency: 5,
    priority: 'interactive',
    signal: undefined,
  });
  // @ts-expect-error -- ids are texts
  void client.trackers.resultsMany([5]);
  // @ts-expect-error -- an option of `pollMany`
  void client.trackers.resultsMany(['t'], { maxPerSecond: 1 });
});

test('couriers.find → couriers, and options of its own', () => {
  expectTypeOf(client.couriers.find('post')).toEqualTypeOf<Promise<Courier[]>>();
  expectTypeOf(client.couriers.find).parameter(1).toEqualTypeOf<FindCouriersOptions | undefined>();
  // @ts-expect-error -- the request is shared, so it has no options of one caller
  void client.couriers.find('post', { timeoutMs: 5 });
});

test('couriers.check and checkMany → problems of four kinds', () => {
  expectTypeOf(client.couriers.check(input)).toEqualTypeOf<Promise<CourierProblem[]>>();
  expectTypeOf(client.couriers.checkMany([input])).toExtend<AsyncIterable<CourierCheck>>();
  expectTypeOf<CourierProblem['problem']>().toEqualTypeOf<
    'missing' | 'deprecated' | 'unknown' | 'not_sendable'
  >();
  // @ts-expect-error -- a text is no list of inputs
  void client.couriers.checkMany('LA680658838NL');
});

test('request → unknown, which the caller must check', () => {
  expectTypeOf(client.request({ method: 'GET', path: '/a' })).resolves.toEqualTypeOf<unknown>();
});

test('withOptions with limits → does not compile', () => {
  // @ts-expect-error -- limits belong to the limiter
  client.withOptions({ rateLimit: {} });
  // @ts-expect-error -- both clients share one limiter
  client.withOptions({ limiter: undefined });
});

test('stubs of a method, written by hand → compile', () => {
  const tracker: Tracker = { trackerId: 't', trackingNumber: 'LA680658838NL', isTracked: true };
  const withResponse = async () => ({
    ...{ data: tracker, response: new Response(), requestId: undefined, attempts: 1, mismatched: [] },
    rateLimit: { limit: undefined, remaining: undefined, resetMs: undefined },
  });
  client.trackers.get = () => Object.assign(Promise.resolve(tracker), { withResponse });
  client.trackers.get = (id) => {
    const promise = Promise.resolve({ ...tracker, trackerId: id });
    return Object.assign(promise, { withResponse });
  };
  const rejecting: ApiPromise<Tracker> = Object.assign(Promise.reject<Tracker>(new Error('no')), {
    withResponse,
  });
  client.trackers.get = () => rejecting;
  class Stub extends Promise<Tracker> implements ApiPromise<Tracker> {
    withResponse = withResponse;
  }
  client.trackers.get = () => new Stub((resolve) => resolve(tracker));
  vi.spyOn(client.trackers, 'get').mockResolvedValue(tracker);
});

test('misspelt input fields → do not compile', () => {
  // @ts-expect-error -- `trackingnumber`
  void client.trackers.create({ trackingnumber: 'x' });
  // @ts-expect-error -- `mail`
  void client.trackers.create({ ...input, recipient: { mail: 'a@b.c' } });
  // @ts-expect-error -- an item of a bulk, too
  void client.trackers.createBulk([{ ...input, clientTrackerID: 'x' }]);
  // @ts-expect-error -- `subscribed`
  void client.trackers.update('t', { subscribed: false });
  // @ts-expect-error -- `pageSize`
  void client.trackers.list({ pageSize: 5 });
  // @ts-expect-error -- clientTrackerId belongs to trackers, not to the per-call plan
  void client.tracking.search({ ...input, clientTrackerId: 'x' });
});

test('input of the wrong kind → does not compile', () => {
  // @ts-expect-error -- no tracking number
  void client.trackers.create({});
  // @ts-expect-error -- a number
  void client.trackers.create({ trackingNumber: 12345 });
  // @ts-expect-error -- a Date
  void client.trackers.create({ ...input, shippingDate: new Date() });
  // @ts-expect-error -- another word
  void client.trackers.get('t', { searchBy: 'trackingNumber' });
});

test('legal input in all its forms → compiles', () => {
  expectTypeOf(client.trackers.create).toBeCallableWith({ ...input, courierCode: 'us-post' });
  expectTypeOf(client.trackers.create).toBeCallableWith({
    ...input,
    clientTrackerId: null,
    courierCode: null,
    shippingDate: null,
    recipient: { email: null, name: null },
    settings: { restrictTrackingToCourierCode: null },
  });
  expectTypeOf(client.trackers.update).toBeCallableWith('t', { isSubscribed: false, courierCode: null });
  expectTypeOf(client.trackers.list).toBeCallableWith({ page: null, limit: null, sort: null });
  expectTypeOf(client.trackers.create).toBeCallableWith({
    ...input,
    clientTrackerId: undefined,
    courierCode: ['us-post', 'fr-post'] as const,
    settings: { restrictTrackingToCourierCode: ['us-post'] },
  });
  expectTypeOf(client.trackers.createBulk).toBeCallableWith(Object.freeze([input]));
  expectTypeOf(client.trackers.list).toBeCallableWith({ page: 1, limit: 5, sort: -1 });
});

test('retryAmbiguous → accepted only by methods that are not safe to repeat', () => {
  expectTypeOf(client.trackers.createBulk).toBeCallableWith([input], { retryAmbiguous: true });
  // @ts-expect-error -- `create` is safe to repeat anyway
  void client.trackers.create(input, { retryAmbiguous: true });
});

test('options → misspelt names and impossible values do not compile', () => {
  // @ts-expect-error -- `timeout`
  void new TrackingClient({ timeout: 5 });
  // @ts-expect-error -- `retry: true`
  void new TrackingClient({ retry: true });
  // @ts-expect-error -- an endpoint that does not exist
  void new TrackingClient({ rateLimit: { limits: { 'trackers.remove': 5 } } });
  // @ts-expect-error -- another word
  void new TrackingClient({ logLevel: 'trace' });
  // @ts-expect-error -- `timeout` of a call
  void client.couriers.list({ timeout: 5 });
});

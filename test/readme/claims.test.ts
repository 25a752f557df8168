// Runs what sentences of the documents claim. A claim may move to another page, so it is looked for in all of them.
import {
  buildEventKey,
  RateLimitError,
  type TrackerInput,
  TrackingClient,
  type TrackingClientOptions,
  TrackingError,
} from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';
import { describe, expect, it, vi } from 'vitest';
import { readLayout } from '../../src/cli/rows.ts';
import { collect, makeInputs } from '../bulk/bulk-service.ts';
import { connect, runLine } from '../cli/make-terminal.ts';
import { makeIds, nothingNew, pass, polledService, read, startPollMany } from '../polling/polled-service.ts';
import { catchRejection, makeClient, networkFailure, type StubResponse } from '../support/make-client.ts';
import { ALL_DOCUMENTS, matchesPattern, parseMarkdown, readDocument } from './support/documents.ts';

const NUMBER = 'RR123456785CN';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const TRACKER = { trackerId: 't1', trackingNumber: NUMBER, isTracked: true };
/** The heads of the table of poll rates, without the first. */
const RATE_HEADS = ['Polls per second', '15 minutes, the default', '1 hour', '6 hours'];
const toLine = (text: string) => text.replace(/\s+/g, ' ');
const prose = toLine(ALL_DOCUMENTS.map((path) => parseMarkdown(readDocument(path)).prose).join('\n'));

/** Expects a document to contain this part of a sentence. */
function expectClaim(claim: string): void {
  expect(prose.includes(claim), `No document says "${claim}"`).toBe(true);
}

/** The cells of the rows of a table, whose heads are these. */
function readTable(...heads: string[]): string[][] {
  const lines = ALL_DOCUMENTS.flatMap((path) => readDocument(path).split('\n'));
  const first = lines.indexOf(`| ${heads.join(' | ')} |`) + 2;
  expect(first, `No document has a table with the heads ${heads.join(', ')}`).toBeGreaterThan(1);
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('| '));
  return lines.slice(first, end).map((line) => line.slice(2, -2).split(' | '));
}

describe('limits', () => {
  /** The limit of `couriers.list`, which is 1 a second, after a response that announces another limit. */
  async function readLimit(announced: number, resetSeconds: number, own?: number): Promise<number> {
    const headers = { 'ratelimit-limit': `${announced}`, 'ratelimit-reset': `${resetSeconds}` };
    const rateLimit = own === undefined ? {} : { limits: { 'couriers.list': own } };
    const { client } = makeClient({ body: { data: { couriers: [] } }, headers }, { rateLimit });
    await client.couriers.list();
    return client.rateLimits()['couriers.list'].limit;
  }

  it('an announced limit → followed upwards to the bounds that the page names', async () => {
    const limits = [
      await readLimit(4, 1),
      await readLimit(4, 2),
      await readLimit(100, 1),
      await readLimit(4, 1, 2),
    ];
    expect(limits).toEqual([4, 1, 5, 2]);
    expectClaim('It follows a higher limit only if `RateLimit-Reset` is at most one second');
    expectClaim('up to five times the limit of the table');
    expectClaim('never above a limit that you have set');
  });

  it.each(readTable('Response after', ...RATE_HEADS))(
    'responses after %s → %s polls per second, and the trackers of the table',
    async (latency, rate, ...trackers) => {
      const [, amount = '', unit, concurrency] =
        /^([\d.]+) (ms|s)(?:, `concurrency: (\d+)`)?$/.exec(latency) ?? [];
      const latencyMs = Number(amount) * (unit === 's' ? 1000 : 1);
      const options = {
        initialDelayMs: 0,
        intervalMs: 900_000,
        ...(concurrency && { concurrency: +concurrency }),
      };
      const service = { latencyMs, rateLimit: {} };
      const { listStarts, stream } = startPollMany(nothingNew, makeIds(150), options, service);
      await pass(30_000);
      // Polls come in groups of nine or ten, so 90 polls are whole groups.
      const [from = 0, to = 0] = [listStarts()[10], listStarts()[100]];
      const measured = 90_000 / (to - from);
      await stream.return();
      expect(Number(rate)).toBe(Math.floor(measured * 10) / 10);
      const counts = [900, 3_600, 21_600].map((seconds) => Math.floor((Number(rate) * seconds) / 100) * 100);
      expect(trackers).toEqual(counts.map((count) => count.toLocaleString('en-US')));
    },
  );
});

it.each([
  ['background', 9],
  ['interactive', 10],
] as const)('20 calls of `pollOnce` with the priority %s → %d are sent at once', async (priority, sent) => {
  const { client, polls } = polledService(nothingNew, { latencyMs: 100, rateLimit: {} });
  const calls = Promise.all(makeIds(20).map((id) => client.trackers.pollOnce(id, { priority })));
  await pass(50);
  expect(polls).toHaveLength(sent);
  await pass(5_000);
  await calls;
  expectClaim('Polls use nine of them');
  expectClaim("`pollOnce` with `priority: 'interactive'` all ten");
});

it('the orders that the job of a recipe reads in an hour → those of fast responses in the table', () => {
  const [[, , , perHour] = []] = readTable('Response after', ...RATE_HEADS);
  expectClaim(`a run reads up to [${perHour} orders](`);
});

describe('errors', () => {
  it('an aborted call → rejects with the reason of the signal, which is no TrackingError', async () => {
    const controller = new AbortController();
    const { client } = makeClient(() => new Promise(() => {}));
    const call = client.couriers.list({ signal: controller.signal });
    controller.abort();
    const error = await catchRejection(call);
    expect(error).toBe(controller.signal.reason);
    expect(error).not.toBeInstanceOf(TrackingError);
    expectClaim('an aborted call rejects with the reason of your signal');
  });

  it('http: to another machine → refused without the option that the page about redirects names', () => {
    const baseUrl = 'http://api.example.com/public/v1';
    const make = (allowInsecureHttp: boolean) =>
      new TrackingClient({ baseUrl, apiKey: 'any', allowInsecureHttp });
    expect(() => make(false)).toThrow('`baseUrl` begins with http://');
    expect(() => make(true)).not.toThrow();
    expectClaim('or has `http:` instead of `https:`');
  });

  it('a call during a long pause → a RateLimitError without a response, as the page says', async () => {
    const response = { status: 429, headers: { 'retry-after': '120' } };
    const { client, requests } = makeClient(response, { rateLimit: {}, retry: { retries: 0 } });
    await catchRejection(client.couriers.list());
    const error = await catchRejection(client.couriers.list());
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, attempts: 0, code: undefined, body: undefined });
    expect(requests).toHaveLength(1);
    expectClaim('Call again after the `retryAfterMs` of the `RateLimitError`');
  });

  it('a response that names an older key of an `apiKey` function → shown, as the page says', async () => {
    const keys = ['older-key-111', 'newer-key-222'];
    const response = { status: 400, body: { errors: [{ code: 'x', message: 'older-key-111' }], data: null } };
    const { client } = makeClient(response, { apiKey: () => keys.shift() ?? '' });
    const messages = [];
    for (let call = 1; call <= 2; call += 1)
      messages.push(String(await catchRejection(client.couriers.list())));
    expect(messages.map((message) => message.includes('older-key-111'))).toEqual([false, true]);
    expectClaim(
      'only the key that it returned last is masked, so a response that quotes an older key shows this key',
    );
  });
});

describe('plans and costs', () => {
  it.each(readTable('Status', '`code`', 'Error', 'Meaning'))(
    'a response with %s and the code %s → %s after one request',
    async (statuses, code, error) => {
      const known = /^`(\w+)`$/.exec(code)?.[1] ?? 'unheard_of';
      for (const status of statuses.split(', ').map(Number)) {
        const { client, requests } = makeClient({
          status,
          body: { errors: [{ code: known }], data: null },
        });
        const rejection = await catchRejection(client.trackers.create({ trackingNumber: NUMBER }));
        expect(rejection).toMatchObject({ name: error.replaceAll('`', ''), status });
        expect(requests).toHaveLength(1);
      }
    },
  );

  it('a used-up quota → new trackers are refused as the table says, and the same payload is not', async () => {
    const fake = createFakeTrackingService({ plans: { perShipment: { quota: 1 } } });
    const { trackers } = new TrackingClient({
      baseUrl: fake.baseUrl,
      apiKey: fake.apiKey,
      fetch: fake.fetch,
    });
    const { trackerId } = await trackers.create({ trackingNumber: NUMBER });
    expect((await trackers.create({ trackingNumber: NUMBER })).trackerId).toBe(trackerId);
    const more = { trackingNumber: 'LA680658838NL' };
    const others = [more, { trackingNumber: 'LA680658839NL' }];
    for (const call of [trackers.create(more), trackers.track(more)])
      expect(await catchRejection(call)).toMatchObject({ name: 'QuotaExceededError' });
    expect(await trackers.createBulk(others)).toMatchObject({ status: 'error', data: null });
    const statuses = [];
    for await (const { status } of trackers.createMany(others, { chunkSize: 1, concurrency: 1 }))
      statuses.push(status);
    expect(statuses).toEqual(['error', 'error']);
    expect(fake.trackers).toHaveLength(1);
    expectClaim(
      "`createBulk` resolves with `status: 'error'`, and `createMany` gives the status `error` to all inputs",
    );
  });
});

/** A fake service whose trackers have results at once, and a client for it. */
function connectToFake() {
  const fake = createFakeTrackingService({ resultsDelayMs: 0 });
  const { baseUrl, apiKey, fetch } = fake;
  return { fake, client: new TrackingClient({ baseUrl, apiKey, fetch, logLevel: 'silent' }) };
}

describe('an outage of an hour', () => {
  /** A fake service in virtual time, and a client for it. `outage` lets every request fail for an hour. */
  function connectBeforeOutage(failure: { status: 503 } | { kind: 'timeout' } = { status: 503 }) {
    vi.useFakeTimers();
    const { fake, client } = connectToFake();
    const outage = () => {
      const { cancel } = fake.fail('*', { ...failure, times: Number.POSITIVE_INFINITY });
      setTimeout(cancel, HOUR_MS);
    };
    return { fake, client, outage };
  }

  /** Lets time pass until the work ends, and returns its duration and its result or error. */
  async function measure<T>(
    work: Promise<T>,
    waitMs = 2 * HOUR_MS,
  ): Promise<{ durationMs: number; result?: T; error?: unknown }> {
    const beganAt = performance.now();
    const settled = work.then(
      (result) => ({ durationMs: performance.now() - beganAt, result }),
      (error: unknown) => ({ durationMs: performance.now() - beganAt, error }),
    );
    await pass(waitMs);
    return settled;
  }

  it.each([
    ['create', { status: 503 }, 7_000, 16_000],
    ['create', { kind: 'timeout' }, 150_000, 180_000],
    ['track', { kind: 'timeout' }, 450_000, 480_000],
  ] as const)(
    '`%s` during %j → rejects after 5 attempts, in the time of the page',
    async (method, failure, from, to) => {
      const { client, outage } = connectBeforeOutage(failure);
      outage();
      const { durationMs, error } = await measure<unknown>(
        client.trackers[method]({ trackingNumber: NUMBER }),
      );
      expect(error).toMatchObject({ attempts: 5 });
      expect(durationMs).toBeGreaterThan(from);
      expect(durationMs).toBeLessThan(to);
      expectClaim(
        'after about ten seconds, or after about three minutes (`trackers.track`: eight) if each attempt runs into its time limit',
      );
    },
  );

  it('`tracking.search`, which is unsafe → rejects after one attempt', async () => {
    const { client, outage } = connectBeforeOutage();
    outage();
    const { error } = await measure(client.tracking.search({ trackingNumber: NUMBER }));
    expect(error).toMatchObject({ attempts: 1 });
    expectClaim('reject after one attempt if the request may have arrived');
  });

  it('`create` with the patient settings of the page → succeeds after the outage', async () => {
    const { client, outage } = connectBeforeOutage();
    outage();
    const retry = { retries: 200, maxBackoffMs: 60_000, maxRetryAfterMs: 3_600_000 };
    const code = ALL_DOCUMENTS.map(readDocument).join();
    expect(code).toContain('{ retries: 200, maxBackoffMs: 60_000, maxRetryAfterMs: 3_600_000 }');
    const { durationMs, result } = await measure(
      client.trackers.create({ trackingNumber: NUMBER }, { retry }),
    );
    expect(result).toMatchObject({ trackingNumber: NUMBER });
    expect(durationMs).toBeGreaterThan(HOUR_MS);
  });

  it('an import → goes on with each request once, and every row is unknown', async () => {
    const { fake, client, outage } = connectBeforeOutage();
    outage();
    const { result } = await measure(collect(client.trackers.createMany(makeInputs(250))));
    expect(result?.statuses).toEqual(Array.from({ length: 250 }, () => 'unknown'));
    expect(fake.requests).toHaveLength(3);
    expectClaim('The rows of each request that may have arrived get the status `unknown`, without a retry');
  });

  it('an import whose connection is refused → its rows get `error` after about two minutes', async () => {
    vi.useFakeTimers();
    const { client } = makeClient(networkFailure('ECONNREFUSED'));
    const outcomes = client.trackers.createMany([{ trackingNumber: NUMBER }]);
    const { durationMs, result } = await measure(collect(outcomes));
    expect(result?.statuses).toEqual(['error']);
    expect(durationMs).toBeGreaterThan(MINUTE_MS);
    expect(durationMs).toBeLessThan(3 * MINUTE_MS);
    expectClaim('each request is retried for about two minutes; then its rows get the status `error`');
  });

  it.each([
    ['a tracker whose poll has succeeded', true, {}, 2],
    ['a new tracker', false, {}, 'ended'],
    ['a new tracker with the option of the page', false, { maxConsecutiveErrors: Infinity }, 2],
  ] as const)('%s, polled before: %s, %j → %s', async (_title, wasPolled, options, expected) => {
    const { fake, client, outage } = connectBeforeOutage();
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const stream = client.trackers.pollMany([trackerId], { intervalMs: MINUTE_MS, ...options });
    const reading = read(stream);
    if (wasPolled) await pass(1.5 * MINUTE_MS);
    expect(reading.items).toHaveLength(wasPolled ? 1 : 0);
    outage();
    fake
      .shipment(NUMBER)
      .addEvent({ statusMilestone: 'info_received' })
      .addEvent({ statusMilestone: 'in_transit' });
    await pass(HOUR_MS + 2 * MINUTE_MS);
    await stream.return();
    const updates = reading.items.slice(wasPolled ? 1 : 0);
    const outcomes = updates.map(({ error, newEvents }) =>
      error === undefined ? newEvents?.length : 'ended',
    );
    expect(outcomes.slice(0, 1)).toEqual([expected]);
    expectClaim('the first poll after the outage brings all events');
    expectClaim('The polling of any other tracker ends after five failed polls');
    expectClaim('`maxConsecutiveErrors: Infinity`, so that no outage ends the polling');
  });

  it.each([{ status: 503 }, { kind: 'timeout' }] as const)(
    '`pollOnce` and `resultsMany` during %j → an error within a minute',
    async (failure) => {
      const { client, outage } = connectBeforeOutage(failure);
      const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
      outage();
      const many = read(client.trackers.resultsMany([trackerId]));
      const { durationMs, error } = await measure(client.trackers.pollOnce(trackerId), MINUTE_MS);
      expect(durationMs).toBeLessThan(MINUTE_MS);
      expect(error).toBeInstanceOf(TrackingError);
      expect(many.items).toMatchObject([{ id: trackerId, error: expect.any(TrackingError) }]);
      expectClaim('the item of `resultsMany` has an `error`, within a minute');
    },
  );
});

describe('a second `create`', () => {
  const CHANGES: Readonly<Record<string, Partial<TrackerInput>>> = {
    title: { title: 'a' },
    orderNumber: { orderNumber: 'a' },
    recipient: { recipient: { name: 'a' } },
    shippingDate: { shippingDate: '2026-11-21' },
    originCountryCode: { originCountryCode: 'CN' },
    destinationCountryCode: { destinationCountryCode: 'US' },
    destinationPostCode: { destinationPostCode: '94901' },
    shipmentReference: { shipmentReference: 'a' },
    courierName: { courierName: 'a' },
    trackingUrl: { trackingUrl: 'https://carrier.test/a' },
    courierCode: { courierCode: 'us-post' },
    settings: { settings: { restrictTrackingToCourierCode: true } },
  };
  const INPUT = { trackingNumber: NUMBER };
  const [harmless = [], costly = [], otherId = [], noId = [], stopped = [], unsubscribed = []] = readTable(
    'Second call',
    'What you get',
  );
  const namesIn = ([cell = '']: string[]) =>
    [...cell.matchAll(/`(\w+)`/g)].flatMap(([, name = '']) => (name in CHANGES ? name : []));

  /** Creates a tracker with each input, and returns how many trackers there are. */
  async function count(first: TrackerInput, second: TrackerInput): Promise<number> {
    const { fake, client } = connectToFake();
    await client.trackers.create(first);
    await client.trackers.create(second);
    return fake.trackers.length;
  }

  it('the two tables of changes → name every field that is tried here', () => {
    expect(new Set([...namesIn(harmless), ...namesIn(costly)])).toEqual(new Set(Object.keys(CHANGES)));
  });

  it.each(namesIn(harmless).filter((name) => name !== 'shippingDate'))(
    'with another %s → the same tracker',
    async (name) => {
      expect(await count(INPUT, { ...INPUT, ...CHANGES[name] })).toBe(1);
      expect(harmless[1]).toBe('the same tracker');
    },
  );

  it('with another time of the same day → the same tracker', async () => {
    const at = (time: string) => ({ ...INPUT, shippingDate: `2026-11-20T${time}:00Z` });
    expect(await count(at('08:00'), at('18:00'))).toBe(1);
  });

  it.each(namesIn(costly))(
    'with another %s → a second tracker; with a clientTrackerId, a ConflictError',
    async (name) => {
      expect(await count(INPUT, { ...INPUT, ...CHANGES[name] })).toBe(2);
      const input = { ...INPUT, clientTrackerId: 'order-1' };
      const error = await catchRejection(count(input, { ...input, ...CHANGES[name] }));
      expect(error).toMatchObject({ name: 'ConflictError' });
      expect(costly[1]).toContain('**second tracker, which you pay for**; with one, a `ConflictError`');
    },
  );

  it('with an additional clientTrackerId → a second tracker', async () => {
    expect(await count(INPUT, { ...INPUT, clientTrackerId: 'order-1' })).toBe(2);
    expect(otherId[1]).toBe('a second tracker');
  });

  it('without the first clientTrackerId → the same tracker', async () => {
    expect(await count({ ...INPUT, clientTrackerId: 'order-1' }, INPUT)).toBe(1);
    expect(noId[1]).toBe('the same tracker');
  });

  it('without a field of the first input → a second tracker', async () => {
    expect(await count({ ...INPUT, ...CHANGES['shipmentReference'] }, INPUT)).toBe(2);
    expect(costly[0]).toContain('a missing');
  });

  it('after the service has stopped tracking → the same tracker; after your own stop → a second tracker', async () => {
    const { fake, client } = connectToFake();
    const { trackerId } = await client.trackers.create(INPUT);
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    expect(await client.trackers.create(INPUT)).toMatchObject({ trackerId, isTracked: false });
    expect(stopped[1]).toBe('the same tracker');
    await client.trackers.update(trackerId, { isSubscribed: false });
    await client.trackers.create(INPUT);
    expect(fake.trackers).toHaveLength(2);
    expect(unsubscribed[1]).toBe('a second tracker');
  });
});

describe('responses', () => {
  const wrong: StubResponse = { body: { data: { tracker: { trackerId: 't1', trackingNumber: 5 } } } };

  it('three responses with the same wrong fields → a warning for each field, and the hook for each response', async () => {
    const [warn, onMismatch] = [vi.fn(), vi.fn()];
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { client } = makeClient(wrong, { logger, logLevel: 'warn', hooks: { onMismatch } });
    for (let call = 1; call <= 3; call += 1) await client.trackers.get('t1');
    const fields = warn.mock.calls.map(([line]) => /(isTracked|trackingNumber)/.exec(String(line))?.[1]);
    expect(fields.sort()).toEqual(['isTracked', 'trackingNumber']);
    expect(onMismatch).toHaveBeenCalledTimes(3);
    expectClaim(
      'logs one warning for each endpoint and field, and calls the hook `onMismatch` for each such response',
    );
  });

  it.each<[string, TrackingClientOptions['invalidResponse'], boolean]>([
    ['trackerId', 'keep', false],
    ['trackingNumber', 'keep', true],
    ['isTracked', 'keep', true],
    ['isTracked', 'throw', false],
  ])(
    'a tracker without %s, with `invalidResponse: %j` → usable: %s',
    async (field, invalidResponse, isUsable) => {
      const tracker = { ...TRACKER, [field]: undefined };
      const { client } = makeClient({ body: { data: { tracker } } }, { invalidResponse });
      const result = await client.trackers.get('t1').then(
        () => true,
        () => false,
      );
      expect(result).toBe(isUsable);
      expectClaim(
        'the schema requires these three fields; with the default `invalidResponse`, a call rejects only if `trackerId` is missing',
      );
    },
  );

  it('a page instead of JSON as the response to a resend → ResponseValidationError, as for every method', async () => {
    const { client } = makeClient({ body: '<html>', headers: { 'content-type': 'text/html' } });
    const error = await catchRejection(client.trackers.resendWebhookEvents('t1'));
    expect(error).toMatchObject({ name: 'ResponseValidationError' });
    expectClaim('if the body cannot be used at all, the call rejects with a `ResponseValidationError`');
  });
});

describe('webhooks and polls', () => {
  /** Sends a webhook to a new inbox, and returns the keys of its events. */
  async function readKeys(ids: object, account?: string): Promise<string[]> {
    const keys: string[] = [];
    const body = { ...ids, events: [{ eventId: 'e1' }] };
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    await inbox.process(body, (_event, { key }) => void keys.push(key), { account });
    return keys;
  }

  it('a poll and a webhook of the same event → the same key, but for an account or without a trackerId', async () => {
    const body = { data: { trackings: [{ tracker: TRACKER, events: [{ eventId: 'e1' }] }] } };
    const { keys } = await makeClient({ body }).client.trackers.pollOnce('t1');
    const both = { trackerId: 't1', clientTrackerId: 'o1' };
    expect(await readKeys(both)).toEqual(keys);
    expect(await readKeys(both, 'acme')).not.toEqual(keys);
    expect(await readKeys({ clientTrackerId: 'o1' })).not.toEqual(keys);
    expect(await readKeys(both, 'acme')).toEqual([buildEventKey(both, { eventId: 'e1' }, 'acme')]);
    expectClaim('The keys of an event are the same in webhooks, unless your webhook handler names an');
    expectClaim('or a webhook has no `trackerId`');
  });

  it('rows that are lost → a resend brings only duplicates, and the history with an empty store brings all events', async () => {
    const { fake, client } = connectToFake();
    let rows: unknown[] = [];
    const onEvent = (event: { status?: string | null | undefined }) => void rows.push(event.status);
    const target = createWebhookHandler({ secret: 'whsec', store: new MemoryDedupeStore(), onEvent });
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    fake.shipment(NUMBER).addEvent().deliver();
    const sender = createWebhookSender({ target, secret: 'whsec', fake });
    await sender.flush();

    rows = [];
    await client.trackers.resendWebhookEvents(trackerId);
    await sender.flush();
    expect(rows).toEqual([]);

    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    await inbox.processHistory(await client.trackers.webhookHistory(trackerId), onEvent);
    expect(rows).toEqual(['In transit', 'Delivered']);
    expectClaim('Your rows are lost, and a resend brings only duplicates');
    expectClaim(
      '`inbox.processHistory(history, onEvent)` of a `new WebhookInbox({ store: new MemoryDedupeStore() })`',
    );
  });

  it.each([
    ['onEvent', 5],
    ['onEvents', 1],
  ])('results with five known events, with `%s` → %d calls to the store', async (callback, calls) => {
    class CountingStore extends MemoryDedupeStore {
      claims = 0;
      override claim(...args: Parameters<MemoryDedupeStore['claim']>) {
        this.claims += 1;
        return super.claim(...args);
      }
    }
    const store = new CountingStore();
    const inbox = new WebhookInbox({ store });
    const events = ['e1', 'e2', 'e3', 'e4', 'e5'].map((eventId) => ({ eventId }));
    const results = { tracker: TRACKER, events };
    await inbox.processResults(results, { [callback]: () => {} });
    const before = store.claims;
    await inbox.processResults(results, { [callback]: () => {} });
    expect(store.claims - before).toBe(calls);
    expectClaim('once for each message with new events, with fewer calls to the store');
  });
});

describe('the command', () => {
  it('the output of `show` → shown below a program that creates the tracker', async () => {
    const blocks = ALL_DOCUMENTS.flatMap((path) => parseMarkdown(readDocument(path)).blocks);
    const shown = blocks.findIndex(({ code }) => code.startsWith('$ npx --no-install tracking-client show'));
    const [line = '', ...expected] = blocks[shown]?.code.trimEnd().split('\n') ?? [];
    expect(blocks[shown - 1]?.code).toContain(`trackers.create({ trackingNumber: '${NUMBER}' })`);
    const fake = connect(createFakeTrackingService());
    const command = line.replace('$ npx --no-install tracking-client ', '');
    expect((await runLine(command)).exitCode).toBe(3);
    await new TrackingClient().trackers.create({ trackingNumber: NUMBER });
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    const { exitCode, stdout } = await runLine(command);
    const withoutTimes = (text: string) => text.trimEnd().replace(/\d{1,2} \w{3} \d\d:\d\d/g, 'TIME');
    expect(exitCode).toBe(0);
    expect(matchesPattern(withoutTimes(stdout), withoutTimes(expected.join('\n'))), stdout).toBe(true);
  });

  it('the column of the tracking numbers → the same name on the page, in the help and in the error', async () => {
    const { stdout } = await runLine('import --help');
    const [, name = ''] = /Only (\w+) is required/.exec(stdout) ?? [];
    expectClaim(`Only the column \`${name}\` is required`);
    expect(() => readLayout(['number'], 'rows.csv')).toThrow(`rows.csv has no column ${name};`);
    for (const spelling of ['tracking_number', 'Tracking Number']) {
      expect(readLayout([spelling], 'rows.csv').fields).toEqual([name]);
      expectClaim(`\`${spelling}\``);
    }
  });
});

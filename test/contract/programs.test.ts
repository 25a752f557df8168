// The requests of public programs for the service, and what each program expects of the responses: the official SDK and its live
// check, the n8n node, the MCP servers, and a receiver of webhooks that skips every `messageId` it has seen.
import { createWebhookSender, type WebhookSenderOptions } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { makeFake, NUMBER, readCode, type WireResponse } from '../testing/make-fake.ts';

type Options = NonNullable<Parameters<typeof makeFake>[0]>;

/** A fake that enforces the limits of the service, and the requests of one program, which waits between them as the program does. */
function makeProgram(headers: Readonly<Record<string, string>>, pauseMs: number, options: Options = {}) {
  const made = makeFake({ limits: {}, ...options });
  async function call(method: string, path: string, body?: unknown): Promise<WireResponse> {
    made.advance(pauseMs);
    return await made.call(method, path, body, headers);
  }
  return { ...made, call };
}

const PLANS = [
  ['the per-shipment plan', {}],
  ['both plans', { plans: { perCall: true } }],
] as const;

describe('the official SDK', () => {
  /** Each method of the SDK accepts only these statuses; any other one is an error. */
  function makeSdk(options: Options = {}) {
    const { call, ...made } = makeProgram({ accept: 'application/json' }, 1200, options);
    const send = async (accepted: readonly number[], ...request: Parameters<typeof call>) => {
      const response = await call(...request);
      expect(accepted, `${request[0]} ${request[1]}: ${response.text}`).toContain(response.status);
      return response.body.data;
    };
    return { ...made, call, send };
  }
  const RUN = 'SDK-SMOKE-1773144000000';

  test.each(PLANS)('the eight steps of its live check, %s → each passes', async (_, options) => {
    const { call, send } = makeSdk(options);
    const { couriers } = await send([200], 'GET', '/couriers');
    expect(couriers[0]).toMatchObject({ courierCode: expect.any(String) });

    const clientTrackerId = `${RUN.toLowerCase()}-a`;
    const input = { trackingNumber: `${RUN}-A`, clientTrackerId };
    const { tracker } = await send([201], 'POST', '/trackers', input);
    expect(tracker).toMatchObject({ trackerId: expect.any(String), ...input });

    const { trackerId } = tracker;
    expect((await send([200], 'GET', `/trackers/${trackerId}`)).tracker.trackerId).toBe(trackerId);
    const byOwnId = `/trackers/${clientTrackerId}?searchBy=clientTrackerId`;
    expect((await send([200], 'GET', byOwnId)).tracker.trackerId).toBe(trackerId);

    const { trackings } = await send([200], 'GET', `/trackers/${trackerId}/results`);
    expect(trackings).toHaveLength(1);
    expect(trackings[0]).toMatchObject({
      tracker: { trackerId },
      shipment: { statusMilestone: expect.any(String) },
    });

    expect((await send([200], 'GET', '/trackers?limit=5')).trackers).toEqual([tracker]);

    const tracked = await send([200, 201], 'POST', '/trackers/track', { trackingNumber: `${RUN}-B` });
    expect(tracked.trackings[0]?.tracker).toMatchObject({ trackerId: expect.any(String) });

    // The last step accepts results without a tracker, or the code of a missing subscription.
    const search = await call('POST', '/tracking/search', { trackingNumber: `${RUN}-C` });
    if (search.status === 201) {
      expect(search.body.data.trackings).toHaveLength(1);
      expect(search.body.data.trackings[0].tracker).toBeUndefined();
    } else expect(readCode(search)).toBe('no_active_subscription');
    expect(search.status === 201).toBe('plans' in options);
  });

  test('its other methods → the statuses and fields that they accept', async () => {
    const { fake, call, send } = makeSdk();
    const { tracker } = await send([201], 'POST', '/trackers', { trackingNumber: NUMBER });
    const path = `/trackers/${tracker.trackerId}`;
    fake.shipment(NUMBER).addEvent().deliver();
    await createWebhookSender({ target: () => new Response(), fake }).flush();

    expect((await send([200], 'GET', `/trackers/search/${NUMBER}/results`)).trackings).toHaveLength(1);
    expect((await send([200], 'PATCH', path, { isSubscribed: true })).tracker).toMatchObject(tracker);
    const { summary } = await send([201], 'POST', `${path}/webhook-events/resend`);
    expect(Number(summary.totalResent)).toBe(2);

    const history = await call('GET', `${path}/webhook-history/download`);
    expect([history.status, history.body.webhooks?.length]).toEqual([200, 2]);
    expect(history.headers.get('content-disposition')).toMatch(/filename="[^"]+\.json"/);

    // The SDK takes a body for a bulk result by its field `status`, whatever the HTTP status is.
    for (const items of [
      [{ trackingNumber: NUMBER }],
      [{ trackingNumber: NUMBER }, {}],
      [{}],
      Array(101).fill({}),
    ]) {
      const { body } = await call('POST', '/trackers/bulk', items);
      expect(['success', 'partial', 'error']).toContain(body.status);
    }
  });

  test.each([
    ['a tracker that does not exist', 'GET', '/trackers/nobody', 'tracker_not_found'],
    ['results of such a tracker', 'GET', '/trackers/nobody/results', 'tracker_not_found'],
    [
      'results of a number without a tracker',
      'GET',
      `/trackers/search/${NUMBER}/results`,
      'tracker_not_found',
    ],
  ])('%s → a code that the SDK maps to its NotFoundError', async (_, method, path, code) => {
    const response = await makeSdk().call(method, path);
    expect([response.status, readCode(response)]).toEqual([404, code]);
  });
});

describe('the n8n node', () => {
  /** The node fails for every status but 2xx. */
  function makeNode(options: Options = {}) {
    const headers = { accept: 'application/json', 'x-source': 'n8n' };
    const { call, ...made } = makeProgram(headers, 100, options);
    const send = async (...request: Parameters<typeof call>) => {
      const response = await call(...request);
      expect(Math.floor(response.status / 100), response.text).toBe(2);
      return response.body;
    };
    return { ...made, call, send };
  }
  /** The node sends an id only if it has this form. */
  const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
  const INPUT = {
    trackingNumber: NUMBER,
    clientTrackerId: 'order-7',
    courierName: 'USPS',
    destinationCountryCode: 'US',
    destinationPostCode: '94901',
    orderNumber: '7',
    originCountryCode: 'CHN',
    shipmentReference: 'basket',
    trackingUrl: 'https://example.test/7',
    shippingDate: '2026-03-01',
    courierCode: ['us-post', 'cn-post'],
    recipient: { email: 'ada@example.test' },
    settings: { restrictTrackingToCourierCode: true },
  };

  test('the check of its credentials → 200', async () => {
    expect((await makeNode().send('GET', '/couriers')).data.couriers).not.toEqual([]);
  });

  test('create, with every field → a tracker whose id has the form of a UUID', async () => {
    const { tracker } = (await makeNode().send('POST', '/trackers', INPUT)).data;
    expect(tracker.trackerId).toMatch(UUID);
  });

  test('create and get results, without a wait → one tracking', async () => {
    const { send } = makeNode();
    const { trackerId } = (await send('POST', '/trackers', { trackingNumber: NUMBER })).data.tracker;
    expect((await send('GET', `/trackers/${trackerId}/results`)).data.trackings).toHaveLength(1);
  });

  test('get results by id and by number → the tracking with its events', async () => {
    const { fake, send } = makeNode();
    const { trackerId } = (await send('POST', '/trackers', { trackingNumber: NUMBER })).data.tracker;
    expect(trackerId).toMatch(UUID);
    fake.shipment(NUMBER).deliver();
    for (const path of [`/trackers/${trackerId}/results`, `/trackers/search/${NUMBER}/results`])
      expect((await send('GET', path)).data.trackings).toMatchObject([{ events: [{}] }]);
  });

  test('update, with every field → the tracker', async () => {
    const { send } = makeNode();
    const { trackerId } = (await send('POST', '/trackers', { trackingNumber: NUMBER })).data.tracker;
    expect(trackerId).toMatch(UUID);
    const patch = {
      isSubscribed: true,
      originCountryCode: 'CN',
      destinationCountryCode: 'US',
      destinationPostCode: '94901',
      shippingDate: '2026-03-01',
      courierCode: ['us-post'],
    };
    const { tracker } = (await send('PATCH', `/trackers/${trackerId}`, patch)).data;
    expect(tracker).toMatchObject({ trackerId, courierCode: ['us-post'] });
  });

  test('100 numbers in one bulk request → each outcome is found by the number that was sent', async () => {
    const numbers = Array.from({ length: 100 }, (_, index) => `rr${100_000_000 + index}cn`);
    const items = numbers.map((trackingNumber) => ({ trackingNumber }));
    const { status, summary, data } = await makeNode().send('POST', '/trackers/bulk', items);
    expect([status, summary?.totalCreated]).toEqual(['success', 100]);
    const found = data.map(({ itemStatus, inputData, tracker }) => [
      itemStatus,
      inputData,
      tracker?.trackerId,
    ]);
    expect(found).toEqual(items.map((item) => ['created', item, expect.stringMatching(UUID)]));
  });

  test.each([
    ['GET', '/trackers', undefined],
    ['GET', '/trackers?limit=2&sort=-1', undefined],
    ['POST', '/trackers/track', { trackingNumber: NUMBER }],
  ])('a call of its own, %s %s → a success', async (method, path, body) => {
    await makeNode().send(method, path, body);
  });

  test('results of a number without a tracker → 404, for which the node has a message', async () => {
    expect((await makeNode().call('GET', `/trackers/search/${NUMBER}/results`)).status).toBe(404);
  });
});

describe('the hosted MCP server', () => {
  /** The tools with the requests that they send. A tool hands a 2xx to the assistant, and the code of any other response. */
  const TOOLS: Readonly<Record<string, (id: string) => [string, string, unknown?]>> = {
    search_tracking: () => ['POST', '/tracking/search', { trackingNumber: NUMBER, courierCode: 'us-post' }],
    track: () => ['POST', '/trackers/track', { trackingNumber: NUMBER }],
    get_tracking_results: (id) => ['GET', `/trackers/${id}/results`],
    'get_tracking_results by an own id': () => ['GET', '/trackers/order-7/results?searchBy=clientTrackerId'],
    search_tracking_by_number: () => ['GET', `/trackers/search/${NUMBER}/results`],
    create_tracker: () => ['POST', '/trackers', { trackingNumber: NUMBER }],
    bulk_create_trackers: () => ['POST', '/trackers/bulk', [{ trackingNumber: NUMBER }]],
    list_trackers: () => ['GET', '/trackers'],
    'list_trackers, one page': () => ['GET', '/trackers?page=1&limit=20&sort=-1'],
    get_tracker: (id) => ['GET', `/trackers/${id}`],
    update_tracker: (id) => ['PATCH', `/trackers/${id}`, { isSubscribed: false }],
    resend_webhooks: (id) => ['POST', `/trackers/${id}/webhook-events/resend`],
    download_webhook_history: (id) => ['GET', `/trackers/${id}/webhook-history/download`],
    get_couriers: () => ['GET', '/couriers'],
  };

  test.each(Object.entries(TOOLS))('%s, for a new tracker → a success', async (_, buildRequest) => {
    const { call, createId } = makeProgram({ accept: 'application/json' }, 1000, {
      plans: { perCall: true },
    });
    const { status, text } = await call(...buildRequest(await createId({ clientTrackerId: 'order-7' })));
    expect(Math.floor(status / 100), text).toBe(2);
  });

  test.each(['track', 'get_tracking_results', 'search_tracking_by_number', 'search_tracking'])(
    '%s, before the first event → one pending tracking without events, which it reports as such',
    async (tool) => {
      const { call, createId } = makeProgram({}, 1000, { plans: { perCall: true } });
      const request = TOOLS[tool]?.(await createId()) ?? expect.fail('Expected a tool');
      expect((await call(...request)).body.data.trackings).toMatchObject([
        { shipment: { statusMilestone: 'pending' }, events: [], statistics: { timestamps: {} } },
      ]);
    },
  );
});

describe('the MCP server for one parcel', () => {
  /** It sends a Content-Type with every request, also without a body. */
  const headers = { accept: 'application/json', 'content-type': 'application/json' };

  test('a number with a tracker → the tracking with the most events, with text for each event', async () => {
    const { fake, call, createId } = makeProgram(headers, 100);
    await createId();
    fake.shipment(NUMBER).addEvent({ location: 'Beijing' }).deliver();
    const { status, body } = await call('GET', `/trackers/search/${NUMBER}/results`);
    expect([status, body.data.trackings.length]).toEqual([200, 1]);
    for (const event of body.data.trackings[0].events)
      expect(event).toMatchObject({
        occurrenceDatetime: expect.any(String),
        statusMilestone: expect.any(String),
        status: expect.any(String),
      });
  });

  test('a number without a tracker → a code that it reports as "not found", and then a search', async () => {
    const { call } = makeProgram(headers, 100, { plans: { perCall: true } });
    expect(readCode(await call('GET', `/trackers/search/${NUMBER}/results`))).toBe('tracker_not_found');
    const input = { trackingNumber: NUMBER, courierCode: 'us-post', destinationPostCode: '94901' };
    const { status, body } = await call('POST', '/tracking/search', input);
    expect([status, body.data.trackings.length]).toEqual([201, 1]);
  });

  test('the couriers → a code and a name for each', async () => {
    const { couriers } = (await makeProgram(headers, 100).call('GET', '/couriers')).body.data;
    for (const courier of couriers)
      expect(courier).toMatchObject({ courierCode: expect.any(String), courierName: expect.any(String) });
  });
});

describe('a worker that skips each messageId and each eventId that it has seen', () => {
  test.each<[what: string, failures: number, options: Options, sending: Partial<WebhookSenderOptions>]>([
    ['as the service sends them', 0, {}, {}],
    ['twice', 0, {}, { duplicates: 1 }],
    ['three times and shuffled', 0, {}, { duplicates: 2, shuffle: true }],
    ['grouped by the service', 0, {}, { itemsPerRequest: 10 }],
    ['again after a failure', 2, {}, { until2xx: true }],
    ['in one item', 0, { groupEvents: true }, { duplicates: 1 }],
  ])('four events, %s → it keeps all four', async (_, failures, options, sending) => {
    const { fake, call, createId } = makeFake(options);
    const trackerId = await createId();
    const seen = new Set<unknown>();
    const kept: unknown[] = [];
    let failuresLeft = failures;
    const target = async (request: Request) => {
      const { trackings } = await request.json();
      if (failuresLeft-- > 0) return new Response(null, { status: 503 });
      for (const { metadata, tracker, events } of trackings) {
        if (seen.has(metadata.messageId)) continue;
        expect(tracker.trackerId).toBe(trackerId);
        for (const { eventId } of events) {
          if (!seen.has(eventId)) kept.push(eventId);
          seen.add(eventId);
        }
        seen.add(metadata.messageId);
      }
      return new Response();
    };
    fake.shipment(NUMBER).addEvent().addEvent({}, {}).deliver();
    const flush = () => createWebhookSender({ target, fake, ...sending }).flush();
    expect(await flush()).toMatchObject({ lost: 0 });
    const ids = fake.shipment(NUMBER).events.map(({ eventId }) => eventId);
    expect([ids.length, kept.toSorted()]).toEqual([4, ids.toSorted()]);
    // A resend replays all messages, and brings nothing new.
    expect((await call('POST', `/trackers/${trackerId}/webhook-events/resend`)).status).toBe(201);
    expect(await flush()).toMatchObject({ lost: 0 });
    expect(kept).toHaveLength(4);
  });
});

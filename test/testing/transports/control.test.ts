import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, type FakeServer } from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const NUMBER = 'RR123456785CN';

describe('the control path', () => {
  const fake = createFakeTrackingService();
  let server: FakeServer;
  beforeEach(async () => {
    fake.reset();
    server = await fake.listen({ control: true });
  });
  afterEach(() => server.close());

  async function post(path: string, body?: unknown, init: RequestInit = {}) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json; charset=utf-8' };
    const request = { method: 'POST', headers, ...(text !== undefined && { body: text }), ...init };
    const response = await fetch(new URL(`/__fake/${path}`, server.url), request);
    return { status: response.status, body: await response.json() };
  }

  const newClient = () => new TrackingClient({ baseUrl: server.url, apiKey: 'any', retry: false });

  it('an event for a number → added to every tracker of it; for a trackerId → to that tracker only', async () => {
    const { trackers } = newClient();
    const first = await trackers.create({ trackingNumber: NUMBER });
    const second = await trackers.create({ trackingNumber: NUMBER, courierCode: 'us-post' });
    const event = { statusMilestone: 'delivered', location: 'Ulm' };
    const added = await post('events', { trackingNumber: NUMBER, event });
    expect(added).toMatchObject({ status: 200, body: { data: { events: [event] } } });
    await post('events', { trackerId: second.trackerId });
    expect(fake.shipment({ trackerId: first.trackerId }).events).toMatchObject([event]);
    expect(fake.shipment({ trackerId: second.trackerId }).events).toHaveLength(2);
  });

  it('stop, then reset → no longer tracked; then no tracker and no recorded request is left', async () => {
    await newClient().trackers.create({ trackingNumber: NUMBER });
    const stopped = await post('stop', { trackingNumber: NUMBER });
    expect(stopped).toEqual({ status: 200, body: { data: { isTracked: false } } });
    expect(fake.trackers[0]?.isTracked).toBe(false);
    expect(await post('reset')).toEqual({ status: 200, body: { data: {} } });
    expect([fake.trackers, fake.requests]).toEqual([[], []]);
  });

  it.each([
    ['one endpoint', { endpoint: 'couriers.list', status: 503, times: 2 }, 2, 503],
    ['any endpoint', { kind: 'html' }, 1, 502],
  ])('a failure planned for %s → the next request fails', async (_, failure, remaining, status) => {
    expect(await post('failures', failure)).toEqual({ status: 200, body: { data: { remaining } } });
    await expect(newClient().couriers.list()).rejects.toMatchObject({ status });
  });

  it.each([
    ['events', {}, 'Give either `trackingNumber` or `trackerId`'],
    ['events', { trackingNumber: NUMBER, trackerId: 'x' }, 'Give either'],
    ['events', { trackingNumber: '!' }, 'Expected `trackingNumber` to have 5 to 50 characters'],
    ['events', { trackerId: 'none' }, 'Expected `trackerId` to be the id of a tracker of this fake'],
    ['events', { trackingNumber: NUMBER, evnt: {} }, 'Unknown option `body.evnt`'],
    ['events', { trackingNumber: NUMBER, event: { locaton: 'x' } }, 'Unknown option `body.event.locaton`'],
    [
      'events',
      { trackingNumber: NUMBER, event: { status: 5 } },
      'Expected `body.event.status` to be a string',
    ],
    ['failures', { status: 99 }, 'Expected `failure.status` to be a whole number from 200 to 599'],
    ['events', 'no JSON', 'The body is not valid JSON.'],
  ])('%s with %j → 400 with the reason', async (path, body, message) => {
    const refused = await post(path, body);
    expect(refused.status).toBe(400);
    expect(refused.body.errors[0].message).toContain(message);
  });

  it('an unknown path → 404 that lists the known paths; GET → 405', async () => {
    const { status, body } = await post('nothing');
    expect(status).toBe(404);
    expect(body.errors[0].message).toContain('/__fake/events, /__fake/stop, /__fake/failures, /__fake/reset');
    // A GET of a browser or of curl has no Content-Type.
    const headers = { authorization: 'Bearer any' };
    expect((await post('reset', undefined, { method: 'GET', headers })).status).toBe(405);
  });

  describe('requests that a web page could send', () => {
    const authorization = 'Bearer any';
    const json = { 'content-type': 'application/json' };

    it.each([
      ['text/plain', 415, { authorization, 'content-type': 'text/plain' }],
      ['no Content-Type', 415, { authorization }],
      ['an Origin', 403, { authorization, ...json, origin: 'https://shop.example' }],
      ['no key', 400, json],
    ])('%s → %i, and nothing is reset', async (_, status, headers) => {
      await newClient().trackers.create({ trackingNumber: NUMBER });
      // Send bytes: `fetch` gives a text the type text/plain.
      const refused = await post('reset', undefined, { headers, body: Buffer.from('{}') });
      expect(refused).toMatchObject({ status, body: { errors: [{ code: expect.any(String) }], data: null } });
      expect(fake.trackers).toHaveLength(1);
    });

    it('a key that is not in `apiKeys` → 401', async () => {
      const closed = createFakeTrackingService({ apiKeys: ['right-key'] });
      await using closedServer = await closed.listen({ control: true });
      const reset = async (key: string) => {
        const headers = { ...json, authorization: `Bearer ${key}` };
        return (await fetch(new URL('/__fake/reset', closedServer.url), { method: 'POST', headers })).status;
      };
      expect([await reset('wrong-key'), await reset('right-key')]).toEqual([401, 200]);
    });
  });

  it('a fake that listens without `control` → 404 for control paths', async () => {
    await using plain = await fake.listen();
    const response = await fetch(new URL('/__fake/reset', plain.url), { method: 'POST' });
    expect(response.status).toBe(404);
    expect(await response.text()).not.toContain('__fake');
  });
});

import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterEach, expect, it, vi } from 'vitest';

const NUMBER = 'RR123456785CN';
const fake = createFakeTrackingService();

afterEach(() => {
  vi.unstubAllGlobals();
  fake.reset();
});

const makeClient = (options) =>
  new TrackingClient({ baseUrl: 'https://api.tracking.example/public/v1', apiKey: 'key', ...options });

it('a call through `fake.fetch` → its tracker, rendered into the document', async () => {
  const client = makeClient({ fetch: fake.fetch });
  const { trackingNumber } = await client.trackers.create({ trackingNumber: NUMBER });
  document.body.textContent = trackingNumber;
  expect(document.querySelector('body')?.textContent).toBe(NUMBER);
});

it('a call with the fetch of happy-dom to a listening fake → its tracker', async () => {
  const server = await fake.listen();
  const client = makeClient({ baseUrl: server.url });
  await expect(client.trackers.create({ trackingNumber: NUMBER })).resolves.toMatchObject({
    trackingNumber: NUMBER,
  });
  await server.close();
});

it('a document without Node, as in a browser → refused', () => {
  expect(window.document).toBe(document);
  vi.stubGlobal('process', undefined);
  expect(() => makeClient()).toThrow('TrackingClient does not run in a browser');
});

// What a person sees of the page, in Chromium. SCREENSHOT=page.png also writes the picture of docs/recipes/page.md.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import chromium from '@sparticuz/chromium';
import { chromium as browsers } from 'playwright-core';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

const AXE = createRequire(import.meta.url).resolve('axe-core');
const PHONE = { width: 375, height: 700 };
const DESKTOP = { width: 720, height: 700 };

const fake = createFakeTrackingService({ resultsDelayMs: 0 });
let service;
let server;
let browser;

before(async () => {
  service = await fake.listen();
  Object.assign(process.env, { TRACKING_BASE_URL: service.url, TRACKING_API_KEY: fake.apiKey });
  ({ server } = await import('../src/server.js'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  browser = await browsers.launch({ executablePath: await chromium.executablePath(), args: chromium.args });
  const { trackers } = new TrackingClient();
  await trackers.create({ trackingNumber: 'RR123456785CN', clientTrackerId: 'order-1' });
  await trackers.create({ trackingNumber: 'LA680658838NL', clientTrackerId: 'order-2' });
  const events = [
    ['2026-02-26', 'info_received', 'Shipping label created'],
    ['2026-02-27T09:10:00+08:00', 'in_transit', 'Accepted by the courier', 'Beijing'],
    ['2026-02-27T23:30:00+08:00', 'in_transit', 'Left the country', 'Beijing'],
    ['2026-03-01T14:02:00', 'in_transit', 'Arrived in the country of destination', 'SAN FRANCISCO, CA 94101'],
    ['2026-03-02T08:05:00', 'out_for_delivery', 'Out for delivery', 'SAN RAFAEL, CA 94901'],
  ];
  const { trackingNumber } = await trackers.create({
    trackingNumber: 'LA680658839NL',
    clientTrackerId: 'order-4',
  });
  fake
    .shipment(trackingNumber)
    .addEvent({ statusMilestone: 'exception', status: '<b>Lost</b>', location: '"Here" & there' });
  const shipment = fake.shipment('RR123456785CN');
  for (const [occurrenceDatetime, statusMilestone, status, location = null] of events)
    shipment.addEvent({ occurrenceDatetime, statusMilestone, status, location });
});
after(async () => {
  await browser?.close();
  server?.close();
  await service?.close();
});

/** The page of an order, as a visitor in another time zone sees it. */
async function visit(id, options = {}) {
  const page = await browser.newPage({ timezoneId: 'America/Los_Angeles', viewport: PHONE, ...options });
  const response = await page.goto(`http://127.0.0.1:${server.address().port}/orders/${id}`);
  return { page, status: response.status() };
}

test('a parcel on its way → its milestone in words, and its events, newest day first, in local times', async () => {
  const { page } = await visit('order-1');
  assert.equal(await page.locator('h1').innerText(), 'Out for delivery');
  assert.equal(await page.locator('[aria-current]').innerText(), 'Out for delivery');
  assert.deepEqual(await page.locator('h2').allInnerTexts(), [
    'Monday, 2 March 2026',
    'Sunday, 1 March 2026',
    'Friday, 27 February 2026',
    'Thursday, 26 February 2026',
  ]);
  assert.deepEqual(await page.locator('time').allInnerTexts(), ['08:05', '14:02', '23:30', '09:10', '']);
  assert.doesNotMatch(await page.locator('body').innerText(), /in_transit|out_for_delivery/);
});

test('an event text with characters of HTML → shown as text', async () => {
  const { page } = await visit('order-4');
  assert.match(await page.locator('main.trouble').innerText(), /Held up[\s\S]*<b>Lost<\/b>\s+"Here" & there/);
  assert.equal(await page.locator('b').count(), 0);
});

for (const [name, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP }))
  for (const colorScheme of ['light', 'dark'])
    test(`${colorScheme} on a ${name} → no horizontal scrolling, and no finding of axe`, async () => {
      const { page } = await visit('order-1', { viewport, colorScheme });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
      await page.addScriptTag({ path: AXE });
      const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations, []);
      assert.ok(passes.some(({ id }) => id === 'color-contrast'));
    });

test('an order without events → a page with a message', async () => {
  const { page } = await visit('order-2');
  assert.match(await page.locator('main').innerText(), /LA680658838NL\s+Waiting for news\s+No news yet/);
});

test('an unknown order or no id → 404, and no paid tracker is created', async () => {
  for (const id of ['order-3', 'RR123456785CN', '..']) assert.equal((await visit(id)).status, 404);
  assert.equal(fake.trackers.length, 3);
});

test('a service that refuses the call → 502 without the text of its error', async () => {
  fake.fail('trackers.results', { status: 403, message: 'words for the shop only' });
  const { page, status } = await visit('order-1');
  assert.equal(status, 502);
  assert.equal(await page.locator('body').innerText(), 'This shipment cannot be shown now');
});

const skip = process.env.SCREENSHOT ? false : 'SCREENSHOT names no file';
test('the picture of the documents → the page, light on a desktop and dark on a phone', {
  skip,
}, async () => {
  const views = [
    [DESKTOP, 'light'],
    [PHONE, 'dark'],
  ];
  const pictures = [];
  for (const [viewport, colorScheme] of views) {
    const { page } = await visit('order-1', { viewport, colorScheme });
    pictures.push((await page.screenshot()).toString('base64'));
  }
  const page = await browser.newPage({
    viewport: { width: DESKTOP.width + PHONE.width, height: PHONE.height },
  });
  const images = pictures.map((picture) => `<img src="data:image/png;base64,${picture}">`).join('');
  await page.setContent(`<style>body { display: flex; margin: 0 }</style>${images}`);
  await page.screenshot({ path: process.env.SCREENSHOT });
});

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

/** Starts a browser in a time zone. Its pages share one process, so it cannot change the zone later. */
async function launch(timeZone) {
  const env = { ...process.env, TZ: timeZone };
  return browsers.launch({ executablePath: await chromium.executablePath(), args: chromium.args, env });
}

before(async () => {
  service = await fake.listen();
  Object.assign(process.env, { TRACKING_BASE_URL: service.url, TRACKING_API_KEY: fake.apiKey });
  ({ server } = await import('../src/server.js'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  browser = await launch('America/Los_Angeles');
  const { trackers } = new TrackingClient();
  await trackers.create({ trackingNumber: 'RR123456785CN', clientTrackerId: 'order-1' });
  const events = [
    ['2026-11-24', 'info_received', 'Shipping label created'],
    ['2026-11-25T09:10:00+08:00', 'in_transit', 'Accepted by the courier', 'Beijing'],
    ['2026-11-25T23:30:00+08:00', 'in_transit', 'Left the country', 'Beijing'],
    ['2026-11-27T14:02:00', 'in_transit', 'Arrived in the country of destination', 'SAN FRANCISCO, CA 94101'],
    ['2026-11-28T01:05:00Z', 'out_for_delivery', 'Out for delivery', 'SAN RAFAEL, CA 94901'],
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
  await trackers.create({ trackingNumber: 'RR123456799CN', clientTrackerId: 'order-5' });
  const inUtc = fake.shipment('RR123456799CN');
  for (const occurrenceDatetime of [
    '2026-11-26',
    '2026-11-27T09:10:00+08:00',
    '2026-11-27T14:02:00',
    '2026-11-27T23:00:00+00:00',
    '2026-11-28T01:05:00Z',
  ])
    inUtc.addEvent({ occurrenceDatetime, statusMilestone: 'in_transit', status: 'News' });
});
after(async () => {
  await browser?.close();
  server?.close();
  await service?.close();
});

/** The page of an order, as a visitor in another time zone sees it. */
async function visit(id, options = {}, visitor = browser) {
  const page = await visitor.newPage({ viewport: PHONE, ...options });
  const response = await page.goto(`http://127.0.0.1:${server.address().port}/orders/${id}`);
  return { page, status: response.status() };
}

test('a parcel on its way → its milestone in words, and its events, newest day first', async () => {
  const { page } = await visit('order-1');
  assert.equal(await page.locator('h1').innerText(), 'Out for delivery');
  assert.equal(await page.locator('[aria-current]').innerText(), 'Out for delivery');
  assert.deepEqual(await page.locator('h2').allInnerTexts(), [
    'Friday 27 November 2026',
    'Wednesday 25 November 2026',
    'Tuesday 24 November 2026',
  ]);
  const times = ['Friday 27 November 2026 your time', '17:05 your time', '14:02', '23:30', '09:10', ''];
  assert.deepEqual(await page.locator('time').allInnerTexts(), times);
  assert.doesNotMatch(await page.locator('body').innerText(), /in_transit|out_for_delivery/);
});

/** The days and times of a page from top to bottom. */
async function readTimes(options, visitor) {
  const { page } = await visit('order-5', options, visitor);
  return page.locator('p time, h2, li time').allInnerTexts();
}

test('times in UTC → in the time of the visitor, on the day of the visitor; all others as they stand', async () => {
  assert.deepEqual(await readTimes({}), [
    'Friday 27 November 2026 your time',
    'Friday 27 November 2026',
    '17:05 your time',
    '15:00 your time',
    '14:02',
    '09:10',
    'Thursday 26 November 2026',
    '',
  ]);
  const visitor = await launch('Asia/Tokyo');
  after(() => visitor.close());
  assert.deepEqual(await readTimes({}, visitor), [
    'Saturday 28 November 2026 your time',
    'Saturday 28 November 2026',
    '10:05 your time',
    '08:00 your time',
    'Friday 27 November 2026',
    '14:02',
    '09:10',
    'Thursday 26 November 2026',
    '',
  ]);
});

test('no script → times in UTC are marked, each time has its `datetime`', async () => {
  assert.deepEqual(await readTimes({ javaScriptEnabled: false }), [
    'Saturday 28 November 2026 UTC',
    'Saturday 28 November 2026',
    '01:05 UTC',
    'Friday 27 November 2026',
    '23:00 UTC',
    '14:02',
    '09:10',
    'Thursday 26 November 2026',
    '',
  ]);
  const { page } = await visit('order-5', { javaScriptEnabled: false });
  const times = page.locator('time');
  assert.deepEqual(await times.evaluateAll((found) => found.map(({ dateTime }) => dateTime)), [
    '2026-11-28T01:05:00Z',
    '2026-11-28T01:05:00Z',
    '2026-11-27T23:00:00+00:00',
    '2026-11-27T14:02:00',
    '2026-11-27T09:10:00+08:00',
    '2026-11-26',
  ]);
});

test('an event text with characters of HTML → shown as text', async () => {
  const { page } = await visit('order-4');
  assert.match(await page.locator('main.trouble').innerText(), /Held up[\s\S]*<b>Lost<\/b>\s+"Here" & there/);
  assert.equal(await page.locator('b').count(), 0);
});

for (const [name, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP }))
  for (const colorScheme of ['light', 'dark'])
    test(`${colorScheme} on a ${name} → no horizontal scrolling, and no finding of axe`, async () => {
      const { page } = await visit('order-5', { viewport, colorScheme });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
      await page.addScriptTag({ path: AXE });
      const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations, []);
      assert.ok(passes.some(({ id }) => id === 'color-contrast'));
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

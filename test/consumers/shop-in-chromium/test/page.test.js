// What a customer sees in Chromium while `npm run shop` plays a week in half a minute in the clone. SCREENSHOTS=folder also writes
// pictures.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import chromium from '@sparticuz/chromium';
import { chromium as browsers } from 'playwright-core';

const AXE = createRequire(import.meta.url).resolve('axe-core');
const PHONE = { width: 375, height: 700 };
const WORDS = ['Waiting for news', 'Announced', 'On its way', 'Out for delivery', 'Delivered'];
const TIMELINE = [
  'Delivered',
  'Out for delivery',
  'Cleared by customs',
  'Held by customs: documents are missing',
  'Handed to customs',
  'Arrived in the country of destination',
  'Left the country of origin',
  'Accepted at the post office',
  'Shipping label created',
];

let play;
let url;
let browser;

before(async () => {
  browser = await browsers.launch({ executablePath: await chromium.executablePath(), args: chromium.args });
  const program = ['--import', 'tsx', 'examples/support/play-shop.ts', '30'];
  play = spawn(process.execPath, program, { cwd: process.env.CLONE, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  for await (const chunk of play.stdout.iterator({ destroyOnReturn: false })) {
    output += chunk;
    [url] = /http:\S+\/orders\/\S+/.exec(output) ?? [];
    if (url !== undefined) break;
  }
  play.stdout.resume();
});
after(async () => {
  await browser?.close();
  if (play.exitCode !== null) return;
  play.kill();
  await once(play, 'exit');
});

/** Reads all texts at once, so that they belong together. */
function readPage(page) {
  return page.evaluate(() => ({
    title: document.querySelector('h1').innerText,
    expected: document.querySelector('h1 + p')?.innerText,
    timeline: [...document.querySelectorAll('li')].map((item) => item.firstChild.textContent.trim()),
  }));
}

test('an order from its label to its delivery → the page tells its status in words, its timeline and its estimate', async () => {
  const page = await browser.newPage({ viewport: PHONE });
  const views = [];
  do {
    await page.goto(url);
    views.push(await readPage(page));
    const { SCREENSHOTS } = process.env;
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${views.length}.png` });
    await page.waitForTimeout(200);
  } while (views.at(-1).title !== 'Delivered');

  const titles = views.map(({ title }) => WORDS.indexOf(title));
  assert.deepEqual(
    titles,
    titles.toSorted((a, b) => a - b),
  );
  assert.ok(titles.includes(WORDS.indexOf('On its way')));
  const estimates = new Set(
    views.flatMap(({ expected }) => (expected?.startsWith('Expected: ') ? expected : [])),
  );
  assert.ok(estimates.size >= 2, [...estimates].join());
  assert.deepEqual(views.at(-1), { title: 'Delivered', expected: undefined, timeline: TIMELINE });
  for (const { timeline } of views)
    assert.deepEqual(timeline, TIMELINE.slice(TIMELINE.length - timeline.length));
  assert.ok(new Set(views.map(({ timeline }) => timeline.length)).size > 2);
});

test('the page on a phone → no horizontal scrolling, and no finding of axe', async () => {
  const page = await browser.newPage({ viewport: PHONE });
  await page.goto(url);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
  await page.addScriptTag({ path: AXE });
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(violations, []);
  assert.ok(passes.some(({ id }) => id === 'color-contrast'));
});

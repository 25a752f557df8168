// The program that `nest build` made, as it runs in production.
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { after, before, test } = require('node:test');
const { createFakeTrackingService } = require('tracking-client/testing');

const PORT = '34517';
const headers = { authorization: 'Bearer whsec-nest', 'content-type': 'application/json' };
let server;
let program;

async function waitUntilListening() {
  for (let tries = 0; tries < 100; tries += 1) {
    const response = await fetch(`http://127.0.0.1:${PORT}/webhooks`, { method: 'HEAD' }).catch(() => {});
    if (response?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('Expected the program to listen');
}

function send(events) {
  const body = JSON.stringify({ trackerId: 't1', events });
  return fetch(`http://127.0.0.1:${PORT}/webhooks`, { method: 'POST', headers, body });
}

before(async () => {
  server = await createFakeTrackingService().listen();
  program = spawn(process.execPath, ['dist/main'], {
    env: {
      ...process.env,
      PORT,
      TRACKING_BASE_URL: server.url,
      TRACKING_API_KEY: 'any',
      TRACKING_WEBHOOK_SECRET: 'whsec-nest',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await waitUntilListening();
});

after(async () => {
  program?.kill('SIGKILL');
  await server?.close();
});

test('a webhook longer than the limit of Nest’s body parser → 200', async () => {
  const events = [{ eventId: 'long', status: 'x'.repeat(300_000) }];
  assert.equal((await send(events)).status, 200);
});

test('SIGTERM → the program ends', { timeout: 30_000 }, async () => {
  program.kill('SIGTERM');
  await once(program, 'exit');
});

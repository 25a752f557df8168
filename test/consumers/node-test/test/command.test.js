import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { TrackingClient } from 'tracking-client';
import { startReceiver } from '../src/receiver.js';

let command;
after(() => command?.kill('SIGKILL'));

test('the installed command → serves the client, pushes to the receiver, and stops with exit code 0', async () => {
  const receiver = await startReceiver('whsec');
  const args = [
    'fake',
    '--port',
    '0',
    '--speed',
    'Infinity',
    '--webhook-url',
    receiver.url,
    '--webhook-secret',
    'whsec',
  ];
  command = spawn('node_modules/.bin/tracking-client', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let baseUrl;
  for await (const line of createInterface({ input: command.stdout })) {
    baseUrl ??= /Base URL +(\S+)/.exec(line)?.[1];
    if (line.includes('Ctrl-C'))
      await new TrackingClient({ baseUrl, apiKey: 'any' }).trackers.create({
        trackingNumber: 'RR123456785CN',
      });
    if (/push .* 200$/.test(line)) break;
  }
  assert.equal(receiver.lines.at(-1), 'RR123456785CN delivered');
  await receiver.close();
  command.kill('SIGINT');
  assert.deepEqual(await once(command, 'exit'), [0, null]);
});

// The other commands as processes: signals, pipes, disks and ports. What they print is tested in test/cli/.

import { createServer } from 'node:http';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { listening } from '../integration/webhook-loopback.ts';
import { type BundledCommand, bundleCommand, printed, type StartedCommand } from './command.ts';

const NUMBER = 'RR123456785CN';
const headers = { authorization: 'Bearer any-key', 'content-type': 'application/json' };

let cli: BundledCommand;
beforeAll(async () => {
  cli = await bundleCommand();
});
afterAll(() => cli[Symbol.asyncDispose]());

function create(baseUrl: string, trackingNumber = NUMBER): Promise<Response> {
  return fetch(`${baseUrl}/trackers`, { method: 'POST', headers, body: JSON.stringify({ trackingNumber }) });
}

describe('fake', () => {
  const start = (...args: string[]) => cli.start(['fake', '--port', '0', ...args]);

  async function readBaseUrl(command: StartedCommand): Promise<string> {
    const [, url = ''] = await printed(command, /Base URL +(\S+)/);
    return url;
  }

  /** Starts a receiver of webhooks; returns its URL. */
  async function receive(onRequest: Parameters<typeof createServer>[1]): Promise<string> {
    const running = await listening(createServer(onRequest));
    onTestFinished(() => running.close());
    return `http://127.0.0.1:${running.port}/webhooks`;
  }

  it('a tracker and a webhook URL → all its events are pushed; each request and push is one line', async () => {
    const secrets: (string | undefined)[] = [];
    const url = await receive((message, response) => {
      secrets.push(message.headers.authorization);
      response.writeHead(secrets.length === 1 ? 503 : 204).end();
    });
    const command = start('--speed', 'Infinity', '--webhook-url', url, '--webhook-secret', 'hush');
    expect((await create(await readBaseUrl(command))).status).toBe(201);
    // The refused push of the first event comes again after the five others.
    await printed(command, /push +RR123456785CN Shipping label created → 204\n/);
    expect(new Set(secrets)).toEqual(new Set(['Bearer hush']));
    const pushed = expect.stringMatching(/^\d\d:\d\d:\d\d push {3}RR123456785CN .* → 204$/);
    expect(command.output.stdout.trim().split('\n').slice(-8)).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d POST {3}\/public\/v1\/trackers RR123456785CN → 201$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d push {3}RR123456785CN .* → 503, attempt 1 of 20$/),
      ...Array.from({ length: 6 }, () => pushed),
    ]);
    expect(command.output.stdout).not.toContain('hush');
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'two %s at once during a push that gets no response → exit code 0',
    async (signal) => {
      let isCalled = false;
      const url = await receive(() => {
        isCalled = true;
      });
      const command = start('--speed', 'Infinity', '--webhook-url', url);
      await create(await readBaseUrl(command));
      await vi.waitUntil(() => isCalled, { timeout: 20_000 });
      command.child.kill(signal);
      setTimeout(() => command.child.kill(signal), 100); // npx sends the signal twice, too.
      expect(await command.exitCode).toBe(0);
      expect(command.output).toMatchObject({ stdout: expect.stringMatching(/Stopped\.\n$/), stderr: '' });
    },
  );

  it('control requests over HTTP → failures, a quota and events for any program, each in a line with its reason', async () => {
    const command = start('--fail', 'trackers.create:409', '--quota', '1', '--play', 'none');
    const baseUrl = await readBaseUrl(command);
    for (const status of [409, 201]) expect((await create(baseUrl)).status).toBe(status);
    expect((await create(baseUrl, 'LA680658838NL')).status).toBe(403);
    await printed(command, /→ 409 request_conflict: Injected failure 409\.\n/);
    await printed(command, /LA680658838NL → 403 quota_limit_reached: The quota is used up\.\n/);
    const body = JSON.stringify({ trackingNumber: NUMBER, event: { status: 'Posted' } });
    const posted = await fetch(new URL('/__fake/events', baseUrl), { method: 'POST', headers, body });
    expect(await posted.json()).toMatchObject({ data: { events: [{ status: 'Posted' }] } });
  });

  it('`watch` until tracking ends, then `track` → the whole timeline, exit code 0', async () => {
    const baseUrl = await readBaseUrl(start('--speed', '400000'));
    const environment = { TRACKING_BASE_URL: baseUrl, TRACKING_API_KEY: 'any' };
    const watch = cli.start(['watch', NUMBER, '--interval', '1s'], environment);
    expect(await watch.exitCode).toBe(0);
    expect(watch.output.stderr).toBe('');
    expect(watch.output.stdout).not.toContain('\u001b');
    const lines = watch.output.stdout.trimEnd().split('\n');
    expect(lines.filter((line) => / [○●] /.test(line))).toHaveLength(6);
    expect(lines.at(-1)).toBe(`${NUMBER}  Delivered, and no longer tracked`);
    const track = cli.start(['track', NUMBER], environment);
    expect(await track.exitCode).toBe(0);
    expect(track.output.stdout).toMatch(/^RR123456785CN {2}Delivered\n( {2}[○●] .*\n){6}$/);
  });
});

describe('other commands', () => {
  async function startService(trackers: number) {
    const fake = createFakeTrackingService();
    const server = await fake.listen();
    onTestFinished(() => server.close());
    for (let index = 0; index < trackers; index += 1) {
      const number = `LP${100_000_000 + index}CN`;
      await create(server.url, number);
      fake.shipment(number).addEvent({});
    }
    return { TRACKING_BASE_URL: server.url, TRACKING_API_KEY: 'any' };
  }

  it('watch and SIGINT → exit code 130 at once', async () => {
    const watch = cli.start(['watch', NUMBER], await startService(0));
    await printed(watch, /no results yet/);
    watch.child.kill('SIGINT');
    expect(await watch.exitCode).toBe(130);
    expect(watch.output.stderr).toBe('');
  });

  it('listen and SIGTERM → exit code 0, no error output', async () => {
    const listen = cli.start(['listen', '--port', '0'], { TRACKING_WEBHOOK_SECRET: 'hush' });
    await printed(listen, /http:\S+/);
    listen.child.kill('SIGTERM');
    expect(await listen.exitCode).toBe(0);
    expect(listen.output.stderr).toBe('');
  });

  it.each(['list --json', 'couriers', 'watch --all --json --interval 1s'])(
    '%s | head -1 → exit code 0, no error output',
    async (line) => {
      const { exitCode, output } = cli.shell(`cli ${line} | head -1`, await startService(5));
      expect(await exitCode).toBe(0);
      expect(output.stdout.split('\n')).toHaveLength(2);
      expect(output.stderr).toBe('');
    },
  );

  it('a full disk → one error line, exit code 1', async () => {
    const { exitCode, output } = cli.shell('cli list > /dev/full', await startService(1));
    expect(await exitCode).toBe(1);
    expect(output.stderr).toBe('tracking-client: Could not print: no space left on device (ENOSPC)\n');
  });
});

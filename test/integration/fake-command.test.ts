import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BundledCommand, bundleCommand, printed, type StartedCommand } from './command.ts';

const NUMBER = 'RR123456785CN';
const headers = { authorization: 'Bearer any-key', 'content-type': 'application/json' };

describe('tracking-client fake', () => {
  const closers: (() => void)[] = [];
  let cli: BundledCommand;
  beforeAll(async () => {
    cli = await bundleCommand();
  });
  afterAll(() => cli[Symbol.asyncDispose]());
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  const start = (...args: string[]) => cli.start(['fake', ...args]);

  async function baseUrlOf(command: StartedCommand): Promise<string> {
    const [, url = ''] = await printed(command, /Base URL +(\S+)/);
    return url;
  }

  function create(baseUrl: string, trackingNumber = NUMBER): Promise<Response> {
    const body = JSON.stringify({ trackingNumber });
    return fetch(`${baseUrl}/trackers`, { method: 'POST', headers, body });
  }

  /** A receiver that refuses its first webhook; resolves `done` when one says that the shipment is delivered. */
  async function receive() {
    const seen: { authorization: string | undefined; body: string }[] = [];
    let tellDone = () => {};
    const done = new Promise<void>((resolve) => {
      tellDone = resolve;
    });
    const server = createServer(async (message, response) => {
      let body = '';
      for await (const chunk of message) body += String(chunk);
      seen.push({ authorization: message.headers.authorization, body });
      response.writeHead(seen.length === 1 ? 503 : 204).end();
      if (body.includes('"delivery_delivered"')) tellDone();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close().closeAllConnections());
    // `address()` is an object for every server that listens on a port.
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`, seen, done };
  }

  it('a tracker and a webhook URL → its whole story is pushed, and each request and push is one line', async () => {
    const receiver = await receive();
    const command = start(
      ...['--port', '0', '--speed', 'Infinity', '--webhook-url', receiver.url, '--webhook-secret', 'hush'],
    );
    expect((await create(await baseUrlOf(command))).status).toBe(201);
    await receiver.done;
    await printed(command, /push +RR123456785CN Delivered \(6 events\) → 204\n/);
    expect(receiver.seen.map(({ authorization }) => authorization)).toEqual(['Bearer hush', 'Bearer hush']);
    const lines = command.output.stdout.trim().split('\n').slice(-3);
    expect(lines).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d POST {3}\/public\/v1\/trackers RR123456785CN → 201$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d push {3}RR123456785CN .* → 503, attempt 1 of 20$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d push {3}RR123456785CN .* → 204$/),
    ]);
    expect(command.output.stdout).not.toContain('hush');
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s, twice at once, with a receiver that never answers → exit code 0',
    async (signal) => {
      const silent = createServer(() => {});
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      closers.push(() => silent.close().closeAllConnections());
      const asked = new Promise((resolve) => silent.once('request', resolve));
      // `address()` is an object for every server that listens on a port.
      const target = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
      const command = start('--port', '0', '--speed', 'Infinity', '--webhook-url', target);
      await create(await baseUrlOf(command));
      await asked;
      command.child.kill(signal);
      setTimeout(() => command.child.kill(signal), 100); // As npx does.
      expect(await command.exitCode).toBe(0);
      expect(command.output).toMatchObject({ stdout: expect.stringMatching(/Stopped\.\n$/), stderr: '' });
    },
  );

  it('a port in use → one line that says so, exit code 1', async () => {
    const first = start('--port', '0');
    const { port } = new URL(await baseUrlOf(first));
    const second = start('--port', port);
    expect(await second.exitCode).toBe(1);
    expect(second.output).toEqual({
      stdout: '',
      stderr: `tracking-client: Could not listen on port ${port} of 127.0.0.1: address already in use (EADDRINUSE); choose another with --port\n`,
    });
  });

  it('failures, a quota and events → what programs in other languages meet, each line with its reason', async () => {
    const command = start('--port', '0', '--fail', 'trackers.create:409', '--quota', '1', '--play', 'none');
    const baseUrl = await baseUrlOf(command);
    for (const status of [409, 201]) expect((await create(baseUrl)).status).toBe(status);
    expect((await create(baseUrl, 'LA680658838NL')).status).toBe(403);
    await printed(command, /→ 409 request_conflict: Injected failure 409\.\n/);
    await printed(command, /LA680658838NL → 403 quota_limit_reached: The quota is used up\.\n/);
    const body = JSON.stringify({ trackingNumber: NUMBER, event: { status: 'Posted' } });
    const posted = await fetch(new URL('/__fake/events', baseUrl), { method: 'POST', headers, body });
    expect(await posted.json()).toMatchObject({ data: { events: [{ status: 'Posted' }] } });
  });

  it('a reader that leaves → ends without an error', async () => {
    const command = start('--port', '0');
    const baseUrl = await baseUrlOf(command);
    command.child.stdout?.destroy();
    await create(baseUrl).catch(() => {});
    expect(await command.exitCode).toBe(0);
    expect(command.output.stderr).toBe('');
  });
});

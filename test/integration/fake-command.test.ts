import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/config/config.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const NUMBER = 'RR123456785CN';
const headers = { authorization: 'Bearer any-key', 'content-type': 'application/json' };

interface Command {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

describe('tracking-client-fake', () => {
  const children: ChildProcess[] = [];
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const close of closers.splice(0)) close();
  });

  function start(...args: string[]): Command {
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/testing/cli/main.ts', ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      output.stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      output.stderr += chunk.toString();
    });
    const exitCode = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { child, output, exitCode };
  }

  /** Waits until the command has printed something; the test's own time limit ends the wait. */
  async function printed({ output }: Command, pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(output.stdout);
      if (found !== null) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function baseUrlOf(command: Command): Promise<string> {
    const [, url = ''] = await printed(command, /Base URL +(\S+)/);
    return url;
  }

  function create(baseUrl: string): Promise<Response> {
    const body = JSON.stringify({ trackingNumber: NUMBER });
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
    '%s with a receiver that never answers → exit code 0',
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
      stderr: `tracking-client-fake: Port ${port} of 127.0.0.1 is in use; choose another with --port\n`,
    });
  });

  it('a bad flag → one usage line on stderr, exit code 2', async () => {
    const command = start('--speed', '0');
    expect(await command.exitCode).toBe(2);
    expect(command.output.stdout).toBe('');
    expect(command.output.stderr).toMatch(
      /^tracking-client-fake: Expected `--speed` .* Usage: tracking-client-fake .*\n$/,
    );
  });

  it('--help → every flag, exit code 0', async () => {
    const command = start('--help');
    expect(await command.exitCode).toBe(0);
    const flags =
      'port host play speed webhook-url webhook-secret duplicates shuffle api-key per-call seed version';
    for (const flag of flags.split(' ')) expect(command.output.stdout).toContain(`--${flag}`);
  });

  it('--version → the version, exit code 0', async () => {
    const command = start('--version');
    expect(await command.exitCode).toBe(0);
    expect(command.output.stdout).toBe(`${VERSION}\n`);
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

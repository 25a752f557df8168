import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import {
  createFakeTrackingService,
  type FakeTrackingService,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import { createWebhookHandler, toNodeHandler } from 'tracking-client/webhooks';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { readDocument } from '../readme/support/documents.ts';
import { makeTerminal, runLine, setEnvironment } from './make-terminal.ts';

const KEY = 'hush-key-1';
const SECRET = 'hush-secret-1';
const ENVIRONMENT = [
  ...['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy', 'NODE_USE_ENV_PROXY', 'NODE_OPTIONS'],
  ...['NODE_EXTRA_CA_CERTS', 'NODE_TLS_REJECT_UNAUTHORIZED', 'TRACKING_WEBHOOK_SECRET'],
  'TRACKING_ALLOW_INSECURE_HTTP',
];

beforeEach(() => {
  for (const name of ENVIRONMENT) vi.stubEnv(name, undefined);
});

/** Makes the environment name a fake service that listens on real HTTP. */
async function serve(options: FakeTrackingServiceOptions = {}): Promise<{ fake: FakeTrackingService; url: string }> {
  const fake = createFakeTrackingService({ apiKeys: [KEY], ...options });
  const { url, close } = await fake.listen();
  onTestFinished(close);
  setEnvironment(url, KEY);
  return { fake, url };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // Safe cast: a TCP server has an address of this type.
  return (server.address() as AddressInfo).port;
}

/** Makes the environment name a server that responds in its own way. */
async function serveAlways(respond: RequestListener): Promise<void> {
  setEnvironment(`http://127.0.0.1:${await listen(createServer(respond))}/public/v1`, KEY);
}

/** Starts a receiver of webhooks; returns its URL. */
async function receive(respond: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(respond))}/webhooks`;
}

/** Runs `doctor`; returns the lines that are not ok, each as status, check and message. */
async function diagnose(flags = '') {
  const { exitCode, stdout, stderr, lines } = await runLine(`doctor --json ${flags}`);
  expect(stdout + stderr).not.toMatch(/hush/);
  expect(stderr).toBe('');
  const all = lines().map((line): Record<'status' | 'check' | 'message', string> => JSON.parse(line));
  const bad = all.filter(({ status }) => status !== 'ok');
  expect(exitCode).toBe(bad.some(({ status }) => status === 'failed') ? 1 : 0);
  return { checks: all.map(({ check }) => check), bad: bad.map((line) => Object.values(line)), all };
}

const says = (text: string | RegExp) => expect.stringMatching(text);

describe('doctor', () => {
  it('an account that works → seven ok lines, only GET requests, exit code 0', async () => {
    const { fake, url } = await serve();
    const { exitCode, lines, stderr } = await runLine('doctor');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(lines()).toEqual([
      says(`^ok       service       ${url} responded after \\d+ ms$`),
      'ok       key           The service accepts the key',
      says(/^ok {7}plan {10}The plan includes trackers, and the account has no trackers yet\. /),
      says(/^ok {7}couriers {6}The list has \d+ couriers$/),
      'ok       limits        Requests per second: 10 for trackers.list, 1 for couriers.list',
      'ok       clock         This clock and that of the service differ by less than 5 s',
      says(/^ok {7}proxy {9}HTTP_PROXY is not set, /),
    ]);
    expect(fake.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /public/v1/trackers',
      'GET /public/v1/couriers',
    ]);
  });
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createFakeTrackingService,
  type FakeTrackingService,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import { createWebhookHandler, toNodeHandler } from 'tracking-client/webhooks';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { readDocument } from '../readme/support/documents.ts';
import { listen } from '../support/listen.ts';
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
async function serve(
  options: FakeTrackingServiceOptions = {},
): Promise<{ fake: FakeTrackingService; url: string }> {
  const fake = createFakeTrackingService({ apiKeys: [KEY], ...options });
  const { url, close } = await fake.listen();
  onTestFinished(close);
  setEnvironment(url, KEY);
  return { fake, url };
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

  it.each([
    ['no URL', undefined, KEY, 'The URL of the service is missing; set TRACKING_BASE_URL'],
    [
      'no key',
      'https://api.example.com/public/v1',
      undefined,
      'The API key is missing; set TRACKING_API_KEY',
    ],
    ['a wrong URL', 'api.example.com', KEY, "TRACKING_BASE_URL ('api.example.com') is not an https:// URL"],
    [
      'a key with a space',
      'https://api.example.com/public/v1',
      'hush hush',
      'Expected TRACKING_API_KEY to be',
    ],
    [
      'http: to another machine',
      'http://api.example.com/public/v1',
      KEY,
      'TRACKING_BASE_URL begins with http:',
    ],
  ])('%s → one failed line', async (_, baseUrl, apiKey, start) => {
    setEnvironment(baseUrl, apiKey);
    expect((await diagnose()).all).toEqual([
      { check: 'settings', status: 'failed', message: expect.stringContaining(start) },
    ]);
  });

  it.each([
    ['the wrong key', { apiKeys: ['another'] }, ['key', 'failed', says(/401: auth_invalid_api_key/)]],
    [
      'no per-shipment plan',
      { plans: { perShipment: false, perCall: true } },
      ['plan', 'failed', says(/422: no_active_subscription/)],
    ],
    [
      'a lower limit',
      { limits: { 'trackers.list': 5 } },
      ['limits', 'warning', says(/ 5 instead of 10 for trackers\.list\. /)],
    ],
  ] as const)('%s → one line that is not ok', async (_, options, line) => {
    await serve(options);
    expect((await diagnose()).bad).toEqual([line]);
  });

  it.each([
    ['trackers.list', { status: 403, code: 'forbidden' }, ['key', 'failed', says(/403: forbidden/)]],
    [
      'trackers.list',
      { status: 403, code: 'quota_limit_reached' },
      ['plan', 'failed', says(/quota is renewed/)],
    ],
    ['trackers.list', { status: 402, code: 'processing_error' }, ['plan', 'failed', says(/402: processing/)]],
    ['trackers.list', { status: 429, retryAfterMs: 3000 }, ['limits', 'failed', says(/ 429/)]],
    ['trackers.list', { status: 503 }, ['service', 'failed', says(/ 503/)]],
    ['trackers.list', { kind: 'reset' }, ['service', 'failed', says(/got no response/)]],
    ['trackers.list', { kind: 'badJson' }, ['service', 'failed', says(/JSON/)]],
    [
      'trackers.list',
      { kind: 'html', status: 401 },
      ['service', 'failed', says(/This web page comes from a proxy/)],
    ],
    [
      'trackers.list',
      { kind: 'html', status: 403 },
      ['service', 'failed', says(/This web page comes from a proxy/)],
    ],
    ['couriers.list', { status: 503 }, ['couriers', 'failed', says(/ 503/)]],
  ] as const)('%s with %j → one line that is not ok, and no retry', async (endpoint, failure, line) => {
    const { fake } = await serve();
    fake.fail(endpoint, failure);
    expect((await diagnose()).bad).toEqual([line]);
    expect(fake.requests.filter((request) => request.endpoint === endpoint)).toHaveLength(1);
  });

  it('trackers and no plan → the key is accepted and couriers are read all the same', async () => {
    await serve({ plans: { perShipment: false } });
    const { checks } = await diagnose();
    expect(checks).toEqual(['service', 'key', 'plan', 'couriers', 'limits', 'clock', 'proxy']);
  });

  it('an account with trackers and without couriers → says so', async () => {
    const { fake, url } = await serve();
    fake.couriers.splice(0, fake.couriers.length);
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ trackingNumber: 'RR123456785CN' });
    await fetch(`${url}/trackers`, { method: 'POST', headers, body });
    const { all, bad } = await diagnose();
    expect(bad).toEqual([['couriers', 'warning', 'The list of couriers is empty']]);
    expect(all.find(({ check }) => check === 'plan')?.message).toContain('the account has trackers');
  });

  it('no announced limits → a client keeps to those it knows', async () => {
    await serve({ limits: false });
    const { all } = await diagnose();
    expect(all.find(({ check }) => check === 'limits')).toMatchObject({
      status: 'ok',
      message: says(/^The service announces no limits/),
    });
  });

  it.each([
    ['a host that does not exist', 'https://no-such-host.invalid/public/v1', /ENOTFOUND|EAI_AGAIN/],
    ['a port that refuses', 'http://127.0.0.1:1/public/v1', /ECONNREFUSED|bad port/],
  ])('%s → the service fails, and nothing else is asked', async (_, baseUrl, reason) => {
    setEnvironment(baseUrl, KEY);
    const { checks, bad } = await diagnose();
    expect(bad).toEqual([['service', 'failed', says(reason)]]);
    expect(checks.slice(0, 2)).toEqual(['service', 'proxy']);
  });

  it('a wrong path → the base URL is doubted', async () => {
    const { url } = await serve();
    setEnvironment(new URL(url).origin, KEY);
    expect((await diagnose()).bad).toEqual([
      ['service', 'failed', says(/404.*; check the base URL .*: its path is usually \/public\/v1$/)],
    ]);
  });

  it('a login page with 200 → the service fails, and the page is not blamed on the key', async () => {
    await serveAlways((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in</html>');
    });
    expect((await diagnose()).bad).toEqual([
      ['service', 'failed', says(/text\/html instead of JSON.*This web page comes from a proxy/)],
    ]);
  });

  it('a service that does not respond → the service fails after 15 seconds', async () => {
    let arrived = () => {};
    const isAsked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    await serveAlways(() => arrived());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const report = diagnose();
    await isAsked;
    await vi.advanceTimersByTimeAsync(15_000);
    expect((await report).bad).toEqual([['service', 'failed', says(/timed out after 15000 ms/)]]);
  });

  it.each([
    [-20_000, /^This clock is (19|20|21) s behind the service/],
    [600_000, /^This clock is 10 min ahead of the service/],
    [26 * 3_600_000, /^This clock is 26 h ahead of the service/],
  ])('a clock that is wrong by %i ms → a warning', async (errorMs, message) => {
    const { fake } = await serve();
    const date = new Date(Date.now() - errorMs).toUTCString();
    fake.fail('trackers.list', { status: 403, code: 'forbidden', headers: { date } });
    expect((await diagnose()).bad).toEqual([
      ['key', 'failed', expect.anything()],
      ['clock', 'warning', says(message)],
    ]);
  });

  it('a response without `Date` → a warning', async () => {
    await serveAlways((_, response) => {
      response.sendDate = false;
      response.writeHead(401).end('{}');
    });
    expect((await diagnose()).bad).toEqual([
      ['key', 'failed', says(/ 401/)],
      ['clock', 'warning', says(/no valid header `Date`/)],
    ]);
  });

  it('http: to another machine with --allow-insecure-http → a warning that the key can be read', async () => {
    const fake = createFakeTrackingService({ baseUrl: 'http://service.test/public/v1', apiKeys: [KEY] });
    setEnvironment(fake.baseUrl, KEY);
    // The name of the host leads nowhere.
    vi.stubGlobal('fetch', fake.fetch);
    const { bad } = await diagnose('--allow-insecure-http');
    expect(bad[0]).toEqual(['service', 'warning', says(/others on the network can read the key/)]);
  });

  it.each([
    ['http_proxy', {}, 'ok', /^HTTP_PROXY is set, but Node ignores it/],
    ['HTTP_PROXY', { NODE_USE_ENV_PROXY: '1' }, 'ok', /^HTTP_PROXY is used, unless/],
    ['HTTP_PROXY', { NODE_OPTIONS: '--x --use-env-proxy' }, 'ok', /^HTTP_PROXY is used, unless/],
    ['HTTPS_PROXY', {}, 'ok', /^HTTP_PROXY is not set/],
  ])('the variables %s and %j → which proxy is used', async (name, variables, status, message) => {
    await serve();
    // Older versions of Node do not know this flag.
    vi.spyOn(process, 'allowedNodeEnvironmentFlags', 'get').mockReturnValue(new Set(['--use-env-proxy']));
    vi.stubEnv(name, 'http://me:hush@proxy.test:3128');
    for (const [variable, value] of Object.entries(variables)) vi.stubEnv(variable, value);
    const { all } = await diagnose();
    expect(all.at(-1)).toMatchObject({ check: 'proxy', status, message: says(message) });
  });

  it('a proxy that Node ignores, and no service → a warning', async () => {
    setEnvironment('http://127.0.0.1:1/public/v1', KEY);
    vi.stubEnv('HTTP_PROXY', 'http://me:hush@proxy.test:3128');
    expect((await diagnose()).bad).toEqual([
      ['service', 'failed', expect.anything()],
      ['proxy', 'warning', says(/set NODE_USE_ENV_PROXY=1/)],
    ]);
  });

  it.each([
    [undefined, undefined, 'ok', /^Node refuses certificates of authorities/],
    ['-----BEGIN CERTIFICATE-----', undefined, 'ok', /^Node also trusts/],
    ['no certificate', undefined, 'warning', /Node ignores it/],
    [undefined, '0', 'warning', /accepts every certificate/],
  ])(
    'https:, a file with %j and TLS checks %s → what is trusted',
    async (content, checks, status, message) => {
      const folder = await mkdtemp(join(tmpdir(), 'tracking-client-doctor-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      const path = join(folder, 'ca.pem');
      if (content !== undefined) {
        await writeFile(path, content);
        vi.stubEnv('NODE_EXTRA_CA_CERTS', path);
      }
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', checks);
      setEnvironment('https://127.0.0.1:1/public/v1', KEY);
      const { all } = await diagnose();
      expect(all.at(-1)).toEqual({ check: 'certificates', status, message: says(message) });
    },
  );

  it('Ctrl-C while the service does not respond → exit code 130', async () => {
    const { terminal, interrupt } = makeTerminal();
    await serveAlways(interrupt);
    expect(await run(['doctor'], terminal)).toBe(130);
  });
});

describe('doctor --webhook-url', () => {
  /** Checks only the receiver, because without a URL the service is not asked; returns the lines about the receiver. */
  async function check(url: string, secret: string | null = SECRET) {
    setEnvironment(undefined, undefined);
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', secret ?? undefined);
    const { all } = await diagnose(`--webhook-url ${url}`);
    return all.slice(1).map((line) => Object.values(line));
  }

  interface Webhook {
    readonly isRight: boolean;
    readonly isBroken: boolean;
    readonly body: string;
  }

  /** Starts a receiver that chooses a status by the webhook. */
  async function receiveWith(choose: (webhook: Webhook) => number, content = '') {
    const bodies: string[] = [];
    const url = await receive(async (request, response) => {
      let body = '';
      for await (const part of request.setEncoding('utf8')) body += part;
      bodies.push(body);
      const isRight = request.headers.authorization === `Bearer ${SECRET}`;
      const isBroken = !body.endsWith('}');
      response.writeHead(choose({ isRight, isBroken, body }), { location: '/x' }).end(content);
    });
    return { url, bodies };
  }

  const accept = ({ isRight, isBroken }: Webhook) => (isRight ? (isBroken ? 400 : 204) : 401);
  const COST = /12 minutes, with up to 20 attempts in about six days$/;

  it('the handler of this package → three ok lines; the event is new in each run, of a tracker that the page names', async () => {
    const received: (readonly [string | null | undefined, string | null | undefined])[] = [];
    const handler = createWebhookHandler({
      secret: SECRET,
      onRefused: () => {},
      onEvent: ({ eventId }, { message }) => void received.push([eventId, message.tracker.trackerId]),
    });
    const url = await receive(toNodeHandler(handler));
    expect(await check(url)).toEqual([
      ['webhook', 'ok', says(/^The receiver responded with 200 after \d+ ms$/)],
      ['wrong secret', 'ok', 'The receiver responded with 401'],
      ['broken body', 'ok', 'The receiver responded with 400'],
    ]);
    const { length } = received;
    await check(url);
    expect(received).toHaveLength(2 * length);
    expect(new Set(received.map(([eventId]) => eventId)).size).toBe(received.length);
    const [id, ...others] = new Set(received.map(([, trackerId]) => trackerId));
    expect(others).toEqual([]);
    expect(readDocument('docs/command.md')).toContain(`\`${id}\``);
  });

  it('a right webhook → the body of the service, without fields of this package', async () => {
    const { url, bodies } = await receiveWith(accept);
    await check(url);
    expect(bodies).toHaveLength(3);
    const [item] = JSON.parse(bodies[0] ?? '').trackings;
    expect(Object.keys(item).sort()).toEqual(['events', 'metadata', 'shipment', 'statistics', 'tracker']);
    expect(bodies[1]).toBe(bodies[0]);
  });

  it.each([
    [
      '500 to all',
      () => 500,
      ['webhook', 'wrong secret', 'broken body'],
      [COST, /instead of 401 or 403/, COST],
    ],
    [
      '500 to the right one',
      (w: Webhook) => (accept(w) === 204 ? 500 : accept(w)),
      ['webhook'],
      [/test button.*days$/],
    ],
    [
      'a redirect',
      (w: Webhook) => (accept(w) === 204 ? 307 : accept(w)),
      ['webhook'],
      [/307, a redirect, instead/],
    ],
    ['any secret', () => 200, ['wrong secret'], [/whoever knows the URL can send events to you$/]],
    [
      '404 to a wrong secret',
      (w: Webhook) => (w.isRight ? 200 : 404),
      ['wrong secret'],
      [/cannot tell a wrong secret/],
    ],
    [
      '500 to a broken body',
      (w: Webhook) => (w.isRight && w.isBroken ? 500 : accept(w)),
      ['broken body'],
      [COST],
    ],
  ])('a receiver that answers %s → failed lines with their cost', async (_, choose, checks, messages) => {
    const { url } = await receiveWith(choose);
    const failures = (await check(url)).filter(([, status]) => status !== 'ok');
    expect(failures).toEqual(checks.map((name, index) => [name, 'failed', says(messages[index] ?? '')]));
  });

  it('a receiver with another secret → the secret is doubted, and the broken body is not sent', async () => {
    const { url, bodies } = await receiveWith(() => 401);
    expect(await check(url)).toEqual([
      ['webhook', 'failed', says(/its secret is not that of TRACKING_WEBHOOK_SECRET or --secret\. .*days$/)],
      ['wrong secret', 'ok', expect.anything()],
      ['broken body', 'warning', says(/^Not checked/)],
    ]);
    expect(bodies).toHaveLength(2);
  });

  it('no secret → says to set one, whether the receiver wants it or not', async () => {
    const refusing = await receiveWith(() => 401);
    const [refused] = await check(refusing.url, null);
    expect(refused).toEqual(['webhook', 'failed', says(/set TRACKING_WEBHOOK_SECRET to the same secret/)]);
    const accepting = await receiveWith(() => 200);
    const [accepted] = await check(accepting.url, null);
    expect(accepted).toEqual(['webhook', 'warning', says(/No secret was sent/)]);
  });

  it.each(['{"success":false}', '{"success":"false"}'])(
    '200 with %s → counts as a failure',
    async (content) => {
      const { url } = await receiveWith(() => 200, content);
      expect((await check(url))[0]).toEqual(['webhook', 'failed', says(/success: false/)]);
    },
  );

  it('no receiver → one failed line', async () => {
    const server = createServer();
    const port = await listen(server);
    server.close();
    expect(await check(`http://127.0.0.1:${port}`)).toEqual([
      ['webhook', 'failed', says(/^The receiver gave no response: .*ECONNREFUSED.*days$/)],
    ]);
  });

  it('a receiver that closes the connection at a broken body → a failed line', async () => {
    const url = await receive(async (request, response) => {
      let body = '';
      for await (const part of request.setEncoding('utf8')) body += part;
      if (!body.endsWith('}')) request.socket.destroy();
      else response.writeHead(request.headers.authorization === `Bearer ${SECRET}` ? 200 : 403).end();
    });
    expect((await check(url))[2]).toEqual(['broken body', 'failed', says(/gave no response/)]);
  });

  it.each([
    [6000, 'warning', /after 6\d{3} ms; after 15 s, the webhook has failed/],
    [15_000, 'failed', /gave no response: nothing came within 15 s/],
  ])('a receiver that takes %i ms → %s', async (delayMs, status, message) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let hasAnswered = false;
    const url = await receive((request, response) => {
      if (hasAnswered) return response.writeHead(401).end();
      hasAnswered = true;
      request.resume().on('end', async () => {
        await vi.advanceTimersByTimeAsync(delayMs);
        response.end();
      });
      return undefined;
    });
    expect((await check(url))[0]).toEqual(['webhook', status, says(message)]);
  });

  it('http: to another machine → nothing is sent, unless --allow-insecure-http is set', async () => {
    expect(await check('http://receiver.invalid/webhooks')).toEqual([
      ['webhook', 'failed', says(/others could read the secret.*`--allow-insecure-http`$/)],
    ]);
    expect(await check('http://receiver.invalid/webhooks --allow-insecure-http')).toEqual([
      ['webhook', 'failed', says(/ENOTFOUND|EAI_AGAIN/)],
    ]);
  });

  it('a wrong URL → exit code 2, and its password is not shown', async () => {
    const { exitCode, stderr } = await runLine('doctor --webhook-url https://me:hush@host.test');
    expect([exitCode, stderr]).toEqual([2, says(/^tracking-client: Expected `--webhook-url` to be /)]);
    expect(stderr).not.toContain('hush');
  });

  it('Ctrl-C while the receiver does not respond → exit code 130', async () => {
    const { terminal, interrupt } = makeTerminal();
    const url = await receive(interrupt);
    setEnvironment(undefined, undefined);
    expect(await run(['doctor', '--webhook-url', url], terminal)).toBe(130);
  });
});

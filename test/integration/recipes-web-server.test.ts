// docs/recipes/web-server.md: the answers that visitors get, through each of its adapters.
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import express, { type ErrorRequestHandler } from 'express';
import fastify from 'fastify';
import { ConnectionError, TrackingClient } from 'tracking-client';
import { createFakeTrackingService, type Failure } from 'tracking-client/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeRecipeFolder } from './recipe-folder.ts';
import { listening, type Running } from './webhook-loopback.ts';

const NUMBER = 'RR123456785CN';
const KEY = 'sk-web-server-0123456789';
/** The id of the only tracker. */
const KNOWN = 'order-1';
/** An id for which the route searches for a number that breaks a rule. */
const BAD = 'number 1';
const UNAVAILABLE = { error: 'Tracking is not available now' };

/** The route of a visitor: `/own` fails without the tracking service. */
type Route = (id: string) => Promise<unknown>;
type Start = (route: Route) => Promise<Running>;

let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await makeRecipeFolder('web-server'));
  // As in every project of NestJS.
  await writeFile(join(folder, 'tsconfig.json'), '{ "compilerOptions": { "experimentalDecorators": true } }');
});
afterAll(() => remove());

const importFile = (name: string) => import(join(folder, 'src', name));

async function startExpress(route: Route, onError: ErrorRequestHandler): Promise<Running> {
  const app = express();
  app.get('/shipments/:id', async ({ params }, response) => void response.json(await route(params.id)));
  return listening(createServer(app.use(onError)));
}

const FRAMEWORKS: Record<string, Start> = {
  'Express 5': async (route) => startExpress(route, (await importFile('express.ts')).trackingErrors),
  'Fastify 5': async (route) => {
    const app = fastify({ logger: { level: 'error', stream: { write: (line) => console.error(line) } } });
    app.setErrorHandler((await importFile('fastify.ts')).trackingErrors);
    app.get<{ Params: { id: string } }>('/shipments/:id', ({ params }) => route(params.id));
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
    return { port: Number(port), close: () => app.close() };
  },
  NestJS: async (route) => {
    const { TrackingErrorFilter } = await importFile('tracking-error.filter.ts');
    const caught: (new () => unknown)[] = Reflect.getMetadata(
      '__filterCatchExceptions__',
      TrackingErrorFilter,
    );
    return startExpress(route, (error, _request, response, next) => {
      // NestJS calls a filter for the classes that its decorator names.
      if (!caught.some((kind) => error instanceof kind)) return next(error);
      new TrackingErrorFilter().catch(error, { switchToHttp: () => ({ getResponse: () => response }) });
    });
  },
  'Next.js': async (route) => {
    const { withAnswers } = await importFile('with-answers.ts');
    const get = withAnswers(async (_request: Request, { params }: { params: Promise<{ id: string }> }) =>
      Response.json(await route((await params).id)),
    );
    const server = createServer(async ({ url = '' }, response) => {
      const params = Promise.resolve({ id: decodeURIComponent(url.split('/')[2] ?? '') });
      const answer: Response = await get(new Request(`http://shop.test${url}`), { params }).catch(
        () => new Response('Internal Server Error', { status: 500 }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    });
    return listening(server);
  },
};

const fake = createFakeTrackingService({ apiKeys: [KEY], resultsDelayMs: 3_600_000 });
/** Each test creates its own client, because a 429 pauses its client. */
let client: TrackingClient;

const route: Route = async (id) => {
  if (id === 'own') throw new Error('own bug');
  if (id.startsWith('number')) return client.tracking.search({ trackingNumber: id.slice('number '.length) });
  return client.trackers.results(id, { searchBy: 'clientTrackerId' });
};

beforeEach(async () => {
  fake.reset();
  const { baseUrl, fetch } = fake;
  client = new TrackingClient({ baseUrl, apiKey: KEY, fetch, retry: false, logLevel: 'silent' });
  await client.trackers.create({ trackingNumber: NUMBER, clientTrackerId: KNOWN });
});

describe('web-server.md, toAnswer', () => {
  async function answerOf(id: string) {
    const { toAnswer } = await importFile('to-answer.ts');
    return toAnswer(await route(id).catch((error) => error), () => {});
  }

  it.each<[cause: string, status: number, failure: Failure, retryAfter?: string]>([
    ['401', 502, { status: 401, code: 'auth_invalid_api_key' }],
    ['403', 502, { kind: 'html', status: 403 }],
    ['404 of a gateway', 502, { kind: 'html', status: 404 }],
    ['409', 502, { status: 409, code: 'tracker_conflict' }],
    ['a used-up quota', 502, { status: 402, code: 'quota_limit_reached' }],
    ['429 with Retry-After', 503, { status: 429, retryAfterMs: 30_000 }, '30'],
    ['500', 503, { status: 500 }],
    ['503 with Retry-After', 503, { status: 503, retryAfterMs: 7_000 }, '7'],
    ['504 of a gateway', 503, { kind: 'html', status: 504 }],
    ['a success that is cut off', 502, { kind: 'badJson' }],
    ['a broken connection', 503, { kind: 'reset' }],
  ])(
    'the service fails with %s → %i, the id of the call, nothing of the failure',
    async (_cause, status, failure, retryAfter) => {
      fake.fail('trackers.results', failure);
      const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
      const body = { ...UNAVAILABLE, callId: expect.any(String) };
      expect(await answerOf(KNOWN)).toEqual({ status, headers, body });
    },
  );

  it('a connection that no retry can open → 502', async () => {
    const { toAnswer } = await importFile('to-answer.ts');
    const error = new ConnectionError('the certificate has expired', { neverSent: true, isPermanent: true });
    expect(toAnswer(error, () => {})).toMatchObject({ status: 502, headers: {} });
  });

  it.each([
    ['a number that breaks a rule', 400, 'Invalid tracking number', BAD],
    ['an id of no tracker', 404, 'Not found', 'order-2'],
    ['a tracker without events', 404, 'No news yet', KNOWN],
  ])('a visitor asks for %s → %i', async (_cause, status, error, id) => {
    expect(await answerOf(id)).toEqual({ status, headers: {}, body: { error } });
  });

  it('a visitor asks for a tracker whose results are a 404 → 404 "No news yet"', async () => {
    fake.fail('trackers.results', { status: 404, code: 'parcel_not_found' });
    expect(await answerOf(KNOWN)).toEqual({ status: 404, headers: {}, body: { error: 'No news yet' } });
  });

  it('results with events, and other values → undefined, so that the route responds', async () => {
    const { toAnswer } = await importFile('to-answer.ts');
    fake.shipment(NUMBER).deliver();
    expect(await answerOf(KNOWN)).toBeUndefined();
    for (const value of [new Error('own bug'), undefined, null, 'text', {}, { events: 'none' }])
      expect(toAnswer(value, () => {})).toBeUndefined();
  });
});

describe.each(Object.entries(FRAMEWORKS))('web-server.md with %s', (_name, start) => {
  let running: Running;
  const logged: string[] = [];
  beforeAll(async () => {
    running = await start(route);
  });
  afterAll(() => running.close());
  beforeEach(() => {
    logged.length = 0;
    vi.stubEnv('NODE_ENV', 'production');
    const write = (...values: unknown[]) => void logged.push(values.map(String).join(' '));
    vi.spyOn(console, 'error').mockImplementation(write);
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      write(text);
      return true;
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  const visit = (id: string) => fetch(`http://127.0.0.1:${running.port}/shipments/${encodeURIComponent(id)}`);

  it('429 of the service → 503 with Retry-After, and the id of the call, which the log has', async () => {
    fake.fail('trackers.results', { status: 429, retryAfterMs: 30_000 });
    const response = await visit(KNOWN);
    const { callId, ...body } = await response.json();
    expect([response.status, response.headers.get('retry-after'), body]).toEqual([503, '30', UNAVAILABLE]);
    expect(callId).toEqual(expect.any(String));
    expect(logged.join()).toContain(callId);
    expect(logged.join()).not.toContain(KEY);
  });

  it('a bad number of a visitor → 400, and no log line', async () => {
    const response = await visit(BAD);
    expect([response.status, await response.json()]).toEqual([400, { error: 'Invalid tracking number' }]);
    expect(logged).toEqual([]);
  });

  it('an error of the app itself → the handler of the framework responds', async () => {
    const response = await visit('own');
    expect([response.status, (await response.text()).includes('Tracking')]).toEqual([500, false]);
  });
});

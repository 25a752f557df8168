// docs/recipes/accounts.md: 500 accounts, a change of a key and of a secret, and the server as it stands.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { isTrackingError, TokenBucketLimiter, type TrackingClient } from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import {
  MemoryDedupeStore,
  toNodeHandler,
  type WebhookCallbacks,
  type WebhookHandler,
} from 'tracking-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makePool, useSchema } from '../integration/postgres-schema.ts';
import { makeRecipeFolder } from '../integration/recipe-folder.ts';
import { describeWithPostgres, describeWithRedis } from '../integration/services.ts';
import { buildPayload, listening } from '../integration/webhook-loopback.ts';
import { recipeFiles } from '../readme/support/recipes.ts';
import { catchRejection } from '../support/make-client.ts';
import { PollingProcesses } from './polling-processes.ts';

const BASE_URL = 'https://tracking.test/public/v1';
const NUMBER = 'RR123456785CN';
/** A database of Redis that nothing else here uses, so that the recipe keeps its default keys. */
const REDIS_DATABASE = 14;
/** Hundreds of requests, and the start of a program, can take long on a busy machine. */
const SLOW_MS = 300_000;

interface Account {
  name: string;
  apiKey: string;
  webhookSecrets: string[];
}

/** The exports of the recipe that the tests use. */
interface Accounts {
  refresh(): Promise<void>;
  findClient(name: string): TrackingClient | undefined;
  createWebhooks(store: MemoryDedupeStore, callbacks: WebhookCallbacks): WebhookHandler;
}
interface Recipe {
  createAccounts(readAll: () => Promise<readonly Account[]>, limiter: TokenBucketLimiter): Accounts;
  routeByKey(
    fakes: ReadonlyMap<string, FakeTrackingService>,
  ): (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
}

let recipe: Recipe;
let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await makeRecipeFolder('accounts'));
  const [accounts, router] = ['src/accounts.ts', 'test/route-by-key.ts'].map(
    (path) => import(join(folder, path)),
  );
  recipe = { ...(await accounts), ...(await router) };
});
afterAll(() => remove());

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

function buildAccount(name: string): Account {
  return { name, apiKey: `key-of-${name}`, webhookSecrets: [`secret-of-${name}`] };
}

/** A request as the service saw it. */
interface SeenRequest {
  readonly key: string;
  /** Undefined for an unknown key. */
  readonly account: string | undefined;
  readonly status: number;
}

/** Creates a fake service for each account, which enforces its limits, and routes all requests of this process to them. */
function startService(accounts: readonly Account[], options: FakeTrackingServiceOptions = {}) {
  const names = new Map(accounts.map(({ name, apiKey }) => [apiKey, name]));
  const fakes = new Map(
    accounts.map(({ name, apiKey }) => {
      const fake = createFakeTrackingService({ seed: name, limitWindow: 'sliding', ...options });
      return [apiKey, fake];
    }),
  );
  const requests: SeenRequest[] = [];
  const route = recipe.routeByKey(fakes);
  vi.stubEnv('TRACKING_BASE_URL', BASE_URL);
  const send = globalThis.fetch;
  vi.stubGlobal('fetch', async (input: string | Request, init: RequestInit = {}) => {
    // Webhooks go to servers of this process.
    if (typeof input !== 'string' || !input.startsWith(BASE_URL)) return send(input, init);
    const response = await route(input, init);
    const key = new Headers(init.headers).get('authorization')?.replace('Bearer ', '') ?? '';
    requests.push({ key, account: names.get(key), status: response.status });
    return response;
  });
  return {
    /** The fake of each key; a test may change the map. */
    fakes,
    requests,
    route,
    fakeOf: ({ apiKey }: Account) => fakes.get(apiKey) ?? expect.fail('Expected a fake'),
  };
}

/** Reads accounts that a test may change; `refresh` reads them again. */
async function makeAccounts(
  accounts: readonly Account[],
  {
    limits = {},
    readAll = async () => accounts.map((account) => ({ ...account })),
  }: MadeAccountsOptions = {},
) {
  const made = recipe.createAccounts(readAll, new TokenBucketLimiter({ limits }));
  await made.refresh();
  const clientOf = (name: string) => made.findClient(name) ?? expect.fail(`Expected the account ${name}`);
  return { ...made, clientOf };
}
interface MadeAccountsOptions {
  limits?: Record<string, number>;
  readAll?: () => Promise<readonly Account[]>;
}

/** Serves the webhooks of accounts over HTTP. */
async function startWebhooks(accounts: Accounts) {
  const handled: { account: string | undefined; key: string; eventId: unknown }[] = [];
  const webhooks = accounts.createWebhooks(new MemoryDedupeStore(), {
    onEvent: ({ eventId }, { account, key }) => void handled.push({ account, key, eventId }),
  });
  const server = await listening(createServer(toNodeHandler(webhooks)));
  cleanUps.push(() => server.close());
  const urlOf = (name: string) => `http://127.0.0.1:${server.port}/webhooks/${name}`;
  /** Sends an event as the service would, and resolves to the status. */
  const send = (name: string, secret: string, eventId = 'e1') => post(urlOf(name), secret, eventId);
  return { handled, urlOf, send };
}

async function post(url: string, secret: string, eventId: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: buildPayload(eventId) });
  await response.arrayBuffer();
  return response.status;
}

/** Does the work of each account, a few at a time. */
async function forEachAccount(
  accounts: readonly Account[],
  concurrency: number,
  work: (account: Account) => Promise<unknown>,
): Promise<void> {
  const left = accounts.values();
  const runLane = async () => {
    for (const account of left) await work(account);
  };
  await Promise.all(Array.from({ length: concurrency }, runLane));
}

describe('accounts.md, 500 accounts', () => {
  const all = Array.from({ length: 500 }, (_, index) => buildAccount(`account-${index}`));

  it(
    'two calls of each account → each call with its own key, no 429',
    async () => {
      const limits = { 'trackers.create': 1 };
      const { requests, fakeOf } = startService(all, { limits });
      const { clientOf } = await makeAccounts(all, { limits });
      const create = ({ name }: Account) =>
        clientOf(name).trackers.create({ trackingNumber: NUMBER, clientTrackerId: name });
      const waiting: Promise<unknown>[] = [];
      await forEachAccount(all, 8, async (account) => {
        await create(account);
        // This call must wait for a second.
        waiting.push(create(account));
      });
      await Promise.all(waiting);
      expect(requests.filter(({ status }) => status !== 201)).toEqual([]);
      expect(requests).toHaveLength(2 * all.length);
      const trackers = all.map((account) =>
        fakeOf(account).trackers.map((tracker) => tracker.clientTrackerId),
      );
      expect(trackers).toEqual(all.map(({ name }) => [name]));
    },
    SLOW_MS,
  );

  it(
    'the webhooks of the fake of each account → handled once for their account',
    async () => {
      const { fakeOf } = startService(all);
      const accounts = await makeAccounts(all);
      const { handled, urlOf } = await startWebhooks(accounts);
      await forEachAccount(all, 8, async (account) => {
        const fake = fakeOf(account);
        await accounts.clientOf(account.name).trackers.create({ trackingNumber: NUMBER });
        fake.shipment(NUMBER).deliver();
        const [secret = ''] = account.webhookSecrets;
        const target = urlOf(account.name);
        expect(await createWebhookSender({ fake, target, secret, duplicates: 1 }).flush()).toMatchObject({
          lost: 0,
        });
      });
      expect(handled.map(({ account }) => account).toSorted()).toEqual(
        all.map(({ name }) => name).toSorted(),
      );
      expect(new Set(handled.map(({ eventId }) => eventId)).size).toBe(all.length);
    },
    SLOW_MS,
  );

  it('a webhook of each account with the same ids → handled once for each account', async () => {
    const { handled, send } = await startWebhooks(await makeAccounts(all));
    const statuses: number[] = [];
    await forEachAccount(all, 8, async ({ name, webhookSecrets: [secret = ''] }) => {
      statuses.push(await send(name, secret));
    });
    expect(statuses).toEqual(all.map(() => 200));
    expect(handled.map(({ account }) => account).toSorted()).toEqual(all.map(({ name }) => name).toSorted());
    expect(new Set(handled.map(({ key }) => key)).size).toBe(all.length);
    expect(new Set(handled.map(({ eventId }) => eventId))).toEqual(new Set(['e1']));
  });
});

describe('accounts.md, routeByKey', () => {
  const [acme, bolt] = [buildAccount('acme'), buildAccount('bolt')] as const;
  const createTracker = (route: typeof fetch, key: string) =>
    route(`${BASE_URL}/trackers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ trackingNumber: NUMBER }),
    });

  it('two accounts → each has its own trackers, with ids of its own', async () => {
    const { route, fakeOf } = startService([acme, bolt]);
    await createTracker(route, acme.apiKey);
    expect([fakeOf(acme).trackers.length, fakeOf(bolt).trackers.length]).toEqual([1, 0]);
    await createTracker(route, bolt.apiKey);
    expect(fakeOf(acme).trackers[0]?.trackerId).not.toBe(fakeOf(bolt).trackers[0]?.trackerId);
  });

  it.each(['key-of-nobody', 'Bearer', ''])(
    'the key %j → refused, and no fake gets the request',
    async (key) => {
      const { route, fakeOf } = startService([acme, bolt]);
      const response = await createTracker(route, key);
      expect([400, 401]).toContain(response.status);
      expect((await response.json()).errors[0].code).toMatch(/^auth_/);
      expect([...fakeOf(acme).requests, ...fakeOf(bolt).requests]).toEqual([]);
    },
  );

  it('a client with an unknown key → AuthenticationError', async () => {
    const { fakes } = startService([acme]);
    const { clientOf } = await makeAccounts([acme]);
    fakes.clear();
    const error = await catchRejection(clientOf('acme').couriers.list());
    expect(isTrackingError(error, 'auth_invalid_api_key')).toBe(true);
  });

  it('two keys of one account → the same trackers', async () => {
    const { route, fakes, fakeOf } = startService([acme]);
    fakes.set('second-key', fakeOf(acme));
    for (const key of [acme.apiKey, 'second-key']) await createTracker(route, key);
    expect(fakeOf(acme)).toMatchObject({ trackers: [{}], requests: [{}, {}] });
  });
});

describe('accounts.md', () => {
  const [acme, bolt] = [buildAccount('acme'), buildAccount('bolt')] as const;

  it.each([
    ['with the secret of another account', 'acme', 'secret-of-bolt'],
    ['without a secret', 'acme', ''],
    ['of an unknown account', 'stranger', 'secret-of-acme'],
    ['without an account', '', 'secret-of-acme'],
    ['whose account is no valid escape', '%zz', 'secret-of-acme'],
  ])('a webhook %s → 401, nothing handled', async (_title, name, secret) => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { handled, send } = await startWebhooks(await makeAccounts([acme, bolt]));
    expect([await send(name, secret), handled]).toEqual([401, []]);
  });

  it('two lookups of an account → one client; an unknown account → undefined', async () => {
    vi.stubEnv('TRACKING_BASE_URL', 'https://tracking.test/v1');
    const { findClient } = await makeAccounts([acme, bolt]);
    expect(findClient('acme')).toBe(findClient('acme'));
    expect(findClient('acme')).not.toBe(findClient('bolt'));
    expect(findClient('stranger')).toBeUndefined();
  });

  it('a new key while calls wait, then the end of the old key → no call fails, and later requests have the new key', async () => {
    const account = buildAccount('acme');
    const { fakes, fakeOf, requests } = startService([account]);
    const fake = fakeOf(account);
    const accounts = await makeAccounts([account]);
    const { trackers } = accounts.clientOf('acme');
    const creating = Array.from({ length: 12 }, () => trackers.create({ trackingNumber: NUMBER }));
    await Promise.all(creating.slice(0, 10)); // ten requests are allowed in a second
    fakes.set('new-key', fake);
    account.apiKey = 'new-key';
    await accounts.refresh();
    fakes.delete('key-of-acme');
    await Promise.all(creating);
    expect(requests.map(({ key, status }) => `${key} ${status}`)).toEqual([
      ...Array(10).fill('key-of-acme 201'),
      ...Array(2).fill('new-key 201'),
    ]);
  });

  it('a second secret, then only the new one → both are accepted for a while, and no event is lost or handled twice', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const account = buildAccount('acme');
    const accounts = await makeAccounts([account]);
    const { handled, send } = await startWebhooks(accounts);
    account.webhookSecrets = ['new-secret', 'secret-of-acme'];
    expect(await send('acme', 'new-secret', 'e1')).toBe(401); // the process has not read the accounts again
    await accounts.refresh();
    expect(await send('acme', 'secret-of-acme', 'e1')).toBe(200);
    expect(await send('acme', 'new-secret', 'e1')).toBe(200);
    expect(await send('acme', 'new-secret', 'e2')).toBe(200);
    account.webhookSecrets = ['new-secret'];
    await accounts.refresh();
    expect(await send('acme', 'secret-of-acme', 'e3')).toBe(401);
    expect(await send('acme', 'new-secret', 'e3')).toBe(200);
    expect(handled.map(({ eventId }) => eventId)).toEqual(['e1', 'e2', 'e3']);
  });

  it('a database that is down → the accounts stay as they were', async () => {
    const readAll = vi.fn(async () => [acme]);
    const accounts = await makeAccounts([], { readAll });
    readAll.mockRejectedValueOnce(new Error('no database'));
    await expect(accounts.refresh()).rejects.toThrow('no database');
    const { send } = await startWebhooks(accounts);
    expect(await send('acme', 'secret-of-acme')).toBe(200);
  });

  it('an account that was removed while its client is in use → unknown, and nothing is sent', async () => {
    const { requests } = startService([acme]);
    const left = [acme];
    const accounts = await makeAccounts(left, { readAll: async () => left });
    const client = accounts.clientOf('acme');
    left.pop();
    await accounts.refresh();
    expect(accounts.findClient('acme')).toBeUndefined();
    await expect(client.couriers.list()).rejects.toThrow('`apiKey`');
    expect(requests).toEqual([]);
  });
});

await describeWithRedis('accounts.md on a real Redis', async (url) => {
  await describeWithPostgres('and a real PostgreSQL', (postgresUrl) => {
    const { schema } = useSchema(postgresUrl);
    const schemaUrl = new URL(postgresUrl);
    schemaUrl.searchParams.set('options', `-c search_path=${schema}`);
    const database = new URL(`/${REDIS_DATABASE}`, url).href;
    const tables = makePool({ connectionString: schemaUrl.href, max: 1 });
    const redis = new Redis(database).on('error', () => {});
    const processes = new PollingProcesses();
    const forgetKeys = async () => {
      const keys = await redis.keys('tracking-client:*');
      if (keys.length > 0) await redis.del(keys);
    };
    const accounts = [buildAccount('acme'), buildAccount('bolt')];
    beforeAll(async () => {
      const [sql] = recipeFiles('accounts').filter(({ path }) => path === 'schema.sql');
      await tables.query(sql?.code ?? '');
      for (const { name, apiKey, webhookSecrets } of accounts)
        await tables.query('INSERT INTO accounts VALUES ($1, $2, $3)', [name, apiKey, webhookSecrets]);
    });
    beforeEach(forgetKeys);
    afterAll(async () => {
      processes.killAll();
      await forgetKeys();
      redis.disconnect();
      await tables.end();
    });

    it('src/server.ts as it stands → serves webhooks and results of two accounts, and ends on SIGTERM', {
      timeout: SLOW_MS,
    }, async () => {
      const { route, fakeOf } = startService(accounts);
      const service = await listening(createServer(toNodeHandler(route)));
      cleanUps.push(() => service.close());
      const clients = await makeAccounts(accounts);
      const free = await listening(createServer());
      await free.close();
      const env = {
        TRACKING_BASE_URL: `http://127.0.0.1:${service.port}/public/v1`,
        DATABASE_URL: schemaUrl.href,
        REDIS_URL: database,
        PORT: `${free.port}`,
      };
      const { lines, end } = await processes.startWorker(folder, env, 'src/server.ts');
      const base = `http://127.0.0.1:${free.port}`;
      await vi.waitFor(() => fetch(base), { timeout: 60_000, interval: 50 });
      for (const account of accounts) {
        const { name, webhookSecrets } = account;
        const fake = fakeOf(account);
        const { trackerId } = await clients.clientOf(name).trackers.create({ trackingNumber: NUMBER });
        fake.shipment(NUMBER).addEvent({ status: `Accepted for ${name}` });
        const response = await fetch(`${base}/accounts/${name}/shipments/${trackerId}`);
        expect(await response.text()).toContain(`Accepted for ${name}`);
        const target = `${base}/webhooks/${name}`;
        const [secret = ''] = webhookSecrets;
        expect(await createWebhookSender({ fake, target, secret, duplicates: 1 }).flush()).toMatchObject({
          sent: [{ status: 200 }, { status: 200 }],
        });
        expect(await post(target, 'another-secret', 'e2')).toBe(401);
      }
      const [first] = accounts;
      if (first === undefined) throw new Error('Expected an account');
      const shipment = async (path: string) => {
        const response = await fetch(`${base}/accounts/${path}`);
        return [response.status, await response.json()];
      };
      // What visitors get: neither the status of the service nor a stack.
      expect(await shipment('nobody/shipments/any')).toEqual([404, { error: 'Not found' }]);
      expect(await shipment('acme/shipments/any')).toEqual([404, { error: 'Not found' }]);
      fakeOf(first).fail('trackers.results', { status: 401 });
      expect(await shipment('acme/shipments/any')).toEqual([
        502,
        { error: 'Tracking is not available now', callId: expect.any(String) },
      ]);
      const { trackerId } = await clients
        .clientOf('acme')
        .trackers.create({ trackingNumber: 'LA680658838NL' });
      expect(await shipment(`acme/shipments/${trackerId}`)).toEqual([
        200,
        expect.objectContaining({ events: [] }),
      ]);
      expect(await end('SIGTERM')).toBe(0);
      expect(lines.filter((line) => line.startsWith('new event of'))).toEqual([
        expect.stringMatching(/^new event of acme /),
        expect.stringMatching(/^new event of bolt /),
      ]);
    });
  });
});

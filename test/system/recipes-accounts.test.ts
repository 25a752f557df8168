// docs/recipes/accounts.md: 500 accounts over HTTP, a change of a key and of a secret, and the server as it stands.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import { TokenBucketLimiter, type TrackingClient } from 'tracking-client';
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
import { PollingProcesses } from './polling-processes.ts';

const NUMBER = 'RR123456785CN';
/** A database of Redis that nothing else here uses, so that the recipe keeps its default keys. */
const REDIS_DATABASE = 14;
/** Hundreds of requests, and the start of a program, can take long on a busy machine. */
const SLOW_MS = 90_000;

interface Account {
  name: string;
  apiKey: string;
  webhookSecrets: string[];
}

/** The exports of the recipe that the tests use. */
interface Accounts {
  refresh(): Promise<void>;
  clientOf(name: string): TrackingClient;
  createWebhooks(store: MemoryDedupeStore, callbacks: WebhookCallbacks): WebhookHandler;
}
interface AccountsOptions {
  readAll(): Promise<readonly Account[]>;
  limiter?: TokenBucketLimiter;
  maxClients?: number;
}
interface Recipe {
  createAccounts(options: AccountsOptions): Accounts;
}

let recipe: Recipe;
let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await makeRecipeFolder('accounts'));
  recipe = await import(join(folder, 'src/accounts.ts'));
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

interface ReceivedRequest {
  readonly at: number;
  readonly key: string;
  readonly account: string | undefined;
  readonly status: number;
  readonly body: string;
}

/**
 * An HTTP server that knows the accounts by their keys, and counts the requests of each account in a sliding window of a second. All
 * accounts have the same tracker with the same event. A request of this process counts from the moment of sending, so that a busy
 * machine does not look like a slow network.
 */
async function startService(accounts: readonly Account[], limit = 10) {
  const names = new Map(accounts.map(({ name, apiKey }) => [apiKey, name]));
  const requests: ReceivedRequest[] = [];
  const server = await listening(
    createServer(async (request, response) => {
      const at = Number(request.headers['x-sent-at'] ?? performance.now());
      const body = await text(request);
      const key = request.headers.authorization?.replace('Bearer ', '') ?? '';
      const account = names.get(key);
      const counted = requests.filter(
        (one) => one.account === account && one.status === 200 && one.at > at - 1_000,
      );
      const status = account === undefined ? 401 : counted.length >= limit ? 429 : 200;
      requests.push({ at, key, account, status, body });
      const tracker = { trackerId: 't1', trackingNumber: NUMBER, isTracked: true };
      const trackings = [{ tracker, events: [{ eventId: 'e1', status: `Accepted for ${account}` }] }];
      response.writeHead(status, {
        'content-type': 'application/json',
        ...(status === 429 && { 'retry-after': '1' }),
      });
      response.end(
        JSON.stringify(status === 200 ? { data: { tracker, trackings } } : { errors: [], data: null }),
      );
    }),
  );
  cleanUps.push(() => server.close());
  const url = `http://127.0.0.1:${server.port}/v1`;
  vi.stubEnv('TRACKING_BASE_URL', url);
  const send = globalThis.fetch;
  vi.stubGlobal('fetch', (input: string | URL, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    headers.set('x-sent-at', `${performance.now()}`);
    return send(input, { ...init, headers });
  });
  return { url, names, requests };
}

/** Reads accounts that a test may change; `refresh` reads them again. */
async function makeAccounts(accounts: readonly Account[], options: Partial<AccountsOptions> = {}) {
  const made = recipe.createAccounts({
    readAll: async () => accounts.map((account) => ({ ...account })),
    ...options,
  });
  await made.refresh();
  return made;
}

/** Serves the webhooks of accounts over HTTP. */
async function startWebhooks(accounts: Accounts) {
  const handled: { account: string | undefined; key: string; eventId: unknown }[] = [];
  const webhooks = accounts.createWebhooks(new MemoryDedupeStore(), {
    onEvent: ({ eventId }, { account, key }) => void handled.push({ account, key, eventId }),
  });
  const server = await listening(createServer(toNodeHandler(webhooks)));
  cleanUps.push(() => server.close());
  /** Sends an event as the service would, and resolves to the status. */
  const send = (name: string, secret: string, eventId = 'e1') =>
    post(`http://127.0.0.1:${server.port}/webhooks/${name}`, secret, eventId);
  return { handled, send };
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
    'two calls of each account, and a map of four clients → each call with its own key, no 429',
    async () => {
      const { requests } = await startService(all, 1);
      const limiter = new TokenBucketLimiter({ limits: { 'trackers.create': 1 } });
      const { clientOf } = await makeAccounts(all, { limiter, maxClients: 4 });
      const create = ({ name }: Account) =>
        clientOf(name).trackers.create({ trackingNumber: NUMBER, clientTrackerId: name });
      const waiting: Promise<unknown>[] = [];
      await forEachAccount(all, 8, async (account) => {
        await create(account);
        // Other accounts have used the map meanwhile, so this is another client. Its call must wait for a second.
        waiting.push(create(account));
      });
      await Promise.all(waiting);
      expect(requests.filter(({ status }) => status !== 200)).toEqual([]);
      const found = requests.map(({ key, body }) => [key, JSON.parse(body).clientTrackerId]);
      const expected = all.flatMap(({ name, apiKey }) => Array(2).fill([apiKey, name]));
      expect(found.toSorted()).toEqual(expected.toSorted());
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

describe('accounts.md', () => {
  const [acme, bolt, cargo] = [buildAccount('acme'), buildAccount('bolt'), buildAccount('cargo')] as const;

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

  it('a map of two clients, three accounts → the least recently used client is dropped', async () => {
    vi.stubEnv('TRACKING_BASE_URL', 'https://tracking.test/v1');
    const { clientOf } = await makeAccounts([acme, bolt, cargo], { maxClients: 2 });
    const [first, second] = [clientOf('acme'), clientOf('bolt')];
    expect(clientOf('acme')).toBe(first);
    const third = clientOf('cargo'); // drops the client of bolt
    expect(clientOf('acme')).toBe(first);
    expect(clientOf('cargo')).toBe(third);
    expect(clientOf('bolt')).not.toBe(second);
  });

  it('a client that is dropped while its calls are under way or wait → the calls go on', async () => {
    const { requests } = await startService([acme, bolt]);
    const { clientOf } = await makeAccounts([acme, bolt], { maxClients: 1 });
    const client = clientOf('acme');
    const creating = Array.from({ length: 12 }, () => client.trackers.create({ trackingNumber: NUMBER }));
    const other = clientOf('bolt').trackers.create({ trackingNumber: NUMBER });
    expect(clientOf('acme')).not.toBe(client);
    await Promise.all([...creating, other]);
    expect(requests.map(({ account, status }) => `${account} ${status}`).toSorted()).toEqual([
      ...Array(12).fill('acme 200'),
      'bolt 200',
    ]);
  });

  it('a new key while calls wait, then the end of the old key → no call fails, and later requests have the new key', async () => {
    const account = buildAccount('acme');
    const { names, requests } = await startService([account]);
    const accounts = await makeAccounts([account]);
    const { trackers } = accounts.clientOf('acme');
    const creating = Array.from({ length: 12 }, () => trackers.create({ trackingNumber: NUMBER }));
    await Promise.all(creating.slice(0, 10)); // ten requests are allowed in a second
    names.set('new-key', 'acme');
    account.apiKey = 'new-key';
    await accounts.refresh();
    names.delete('key-of-acme');
    await Promise.all(creating);
    expect(requests.map(({ key, status }) => `${key} ${status}`)).toEqual([
      ...Array(10).fill('key-of-acme 200'),
      ...Array(2).fill('new-key 200'),
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
    const { requests } = await startService([acme]);
    const left = [acme];
    const accounts = await makeAccounts(left, { readAll: async () => left });
    const client = accounts.clientOf('acme');
    left.pop();
    await accounts.refresh();
    expect(() => accounts.clientOf('acme')).toThrow('There is no account with the name acme');
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
      const { url: service } = await startService(accounts);
      const free = await listening(createServer());
      await free.close();
      const env = {
        TRACKING_BASE_URL: service,
        DATABASE_URL: schemaUrl.href,
        REDIS_URL: database,
        PORT: `${free.port}`,
      };
      const { lines, end } = await processes.startWorker(folder, env, 'src/server.ts');
      const base = `http://127.0.0.1:${free.port}`;
      await vi.waitFor(() => fetch(base), { timeout: 60_000, interval: 50 });
      for (const { name } of accounts) {
        const response = await fetch(`${base}/accounts/${name}/shipments/t1`);
        expect(await response.text()).toContain(`Accepted for ${name}`);
        const hook = `${base}/webhooks/${name}`;
        expect(await post(hook, `secret-of-${name}`, 'e1')).toBe(200);
        expect(await post(hook, `secret-of-${name}`, 'e1')).toBe(200);
        expect(await post(hook, 'another-secret', 'e2')).toBe(401);
      }
      expect(await end('SIGTERM')).toBe(0);
      expect(lines.filter((line) => line.startsWith('new event of'))).toEqual([
        expect.stringMatching(/^new event of acme /),
        expect.stringMatching(/^new event of bolt /),
      ]);
    });
  });
});

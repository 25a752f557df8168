import { describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import { ScriptedRedis } from '../redis/limiter/make-redis-limiter.ts';
import { API_KEY, BASE_URL, makeClient } from '../support/make-client.ts';

const COURIERS = { body: { data: [] } };

describe('withOptions', () => {
  test('other options → used by the new client, the old client keeps its own', async () => {
    const { client, requests } = makeClient(COURIERS, { headers: { 'x-a': 'old' } });
    const changed = client.withOptions({ headers: { 'x-a': 'new' } });
    await changed.couriers.list();
    await client.couriers.list();
    expect(requests.map(({ headers }) => headers.get('x-a'))).toEqual(['new', 'old']);
    expect(changed).toBeInstanceOf(TrackingClient);
  });

  test.each([null, undefined, 'options'])('%s instead of options → ConfigurationError', (options) => {
    const { client } = makeClient();
    // @ts-expect-error: a program without types gives anything.
    expect(() => client.withOptions(options)).toThrow(ConfigurationError);
  });

  test('missing options → inherited, key and base URL included', async () => {
    const { client, requests } = makeClient(COURIERS, { headers: { 'user-agent': 'shop/1' } });
    await client.withOptions({ timeoutMs: 5 }).couriers.list();
    expect(requests[0]?.url).toBe(`${BASE_URL}/couriers`);
    expect(requests[0]?.headers.get('authorization')).toBe(`Bearer ${API_KEY}`);
    expect(requests[0]?.headers.get('user-agent')).toBe('shop/1');
  });

  test('another key in the environment meanwhile → another account, with limits of its own', async () => {
    vi.stubEnv('TRACKING_API_KEY', 'key-of-the-first-account');
    const { client } = makeClient(COURIERS, { rateLimit: {}, apiKey: undefined });
    vi.stubEnv('TRACKING_API_KEY', 'key-of-the-second-account');
    await client.withOptions({ timeoutMs: 5_000 }).couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(0);
  });

  test('a RedisLimiter, other options and then a function as key → ConfigurationError that asks for `account`', () => {
    const limiter = new RedisLimiter({ redis: new ScriptedRedis() });
    const { client } = makeClient(COURIERS, { rateLimit: undefined, limiter });
    const changed = client.withOptions({ timeoutMs: 5_000 }).withOptions({ logLevel: 'info' });
    expect(() => changed.withOptions({ apiKey: () => 'another-key' })).toThrow(/^`account` is missing\./);
  });

  test('a subclass → a client of the subclass', () => {
    class ShopClient extends TrackingClient {
      listOrders(): string[] {
        return [];
      }
    }
    const client = new ShopClient({ baseUrl: BASE_URL, apiKey: API_KEY });
    expect(client.withOptions({ timeoutMs: 5 })).toBeInstanceOf(ShopClient);
  });

  test('a client without a limiter → the new client has none, either', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: false });
    const changed = client.withOptions({ timeoutMs: 5_000 });
    await changed.couriers.list();
    expect(changed.rateLimits()['couriers.list'].inUse).toBe(0);
  });

  test('an option that is undefined → inherited, the limiter too', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: undefined });
    // @ts-expect-error: a program without types may pass an option that is undefined.
    const changed = client.withOptions({ limiter: undefined, apiKey: undefined, baseUrl: undefined });
    await changed.couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test.each<[string, object]>([
    ['rateLimit', { rateLimit: { limits: { 'couriers.list': 5 } } }],
    ['rateLimit', { rateLimit: false }],
    ['limiter', { limiter: new TokenBucketLimiter() }],
  ])('%s → ConfigurationError that says where it goes, and the limits stay', (name, options) => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    expect(() => client.withOptions(options)).toThrow(
      new ConfigurationError(
        `\`withOptions\` does not accept \`${name}\`, because the new client shares the limiter of the old client; pass it to \`new TrackingClient\``,
      ),
    );
    expect(client.rateLimits()['couriers.list'].limit).toBe(1);
  });
});

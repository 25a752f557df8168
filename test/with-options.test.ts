import { describe, expect, test } from 'vitest';
import { TrackingClient } from '../src/client.ts';
import { ConfigurationError } from '../src/errors.ts';
import { TokenBucketLimiter } from '../src/limiter/token-bucket.ts';
import { API_KEY, BASE_URL, makeClient } from './support/make-client.ts';

const COURIERS = { body: { data: [] } };

describe('withOptions', () => {
  test('other options → used by the new client, the old one keeps its own', async () => {
    const { client, requests } = makeClient(COURIERS, { headers: { 'x-a': 'old' } });
    const other = client.withOptions({ headers: { 'x-a': 'new' } });
    await other.couriers.list();
    await client.couriers.list();
    expect(requests.map(({ headers }) => headers.get('x-a'))).toEqual(['new', 'old']);
    expect(other).toBeInstanceOf(TrackingClient);
  });

  test.each([null, undefined, 'options'])('%s instead of options → ConfigurationError', (options) => {
    const { client } = makeClient();
    // @ts-expect-error: a program without types gives anything.
    expect(() => client.withOptions(options)).toThrow(ConfigurationError);
  });

  test('options not given → taken over, key and base URL included', async () => {
    const { client, requests } = makeClient(COURIERS, { headers: { 'user-agent': 'shop/1' } });
    await client.withOptions({ timeoutMs: 5 }).couriers.list();
    expect(requests[0]?.url).toBe(`${BASE_URL}/couriers`);
    expect(requests[0]?.headers.get('authorization')).toBe(`Bearer ${API_KEY}`);
    expect(requests[0]?.headers.get('user-agent')).toBe('shop/1');
  });

  test('the same account → one allowance with the old client', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    const other = client.withOptions({ timeoutMs: 5_000 });
    await other.couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test('of a client of withOptions → still the one allowance', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    await client.withOptions({ timeoutMs: 5_000 }).withOptions({ logLevel: 'silent' }).couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test('a client whose key is a function → one allowance with the old client', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: {}, apiKey: () => API_KEY });
    await client.withOptions({ timeoutMs: 5_000 }).couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test('another key → an allowance of its own', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    await client.withOptions({ apiKey: 'another' }).couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(0);
  });

  test('rateLimit: false → no limiter, also for clients made from it', async () => {
    const { client, requests } = makeClient(COURIERS, { rateLimit: {} });
    const free = client.withOptions({ rateLimit: false }).withOptions({ timeoutMs: 5_000 });
    await Promise.all([free.couriers.list(), free.couriers.list(), free.couriers.list()]);
    expect(requests).toHaveLength(3);
    expect(client.rateLimits()['couriers.list'].inUse).toBe(0);
  });

  test('rateLimit of a client that had none → a limiter', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: false });
    const limited = client.withOptions({ rateLimit: {} });
    await limited.couriers.list();
    expect(limited.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test('an option that makes no sense → ConfigurationError', () => {
    const { client } = makeClient(COURIERS);
    expect(() => client.withOptions({ timeoutMs: 0 })).toThrow(ConfigurationError);
  });

  test('the options given → not changed', () => {
    const options = Object.freeze({ timeoutMs: 5_000, headers: Object.freeze({ 'x-a': 'b' }) });
    const { client } = makeClient(COURIERS);
    expect(() => client.withOptions(options)).not.toThrow();
  });

  test('an option that is given as undefined → inherited, the limiter too', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: undefined });
    const twin = client.withOptions({ limiter: undefined, apiKey: undefined, baseUrl: undefined });
    await twin.couriers.list();
    expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
  });

  test('rateLimit of the old client → its limits hold, the rest set up the shared limiter', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: { limits: { 'couriers.list': 5 }, maxQueue: 7 } });
    expect(client.withOptions({ timeoutMs: 5 }).rateLimits()['couriers.list'].limit).toBe(5);
  });

  test('rateLimit.maxQueue, which belongs to the shared limiter → ConfigurationError', () => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    expect(() => client.withOptions({ rateLimit: { maxQueue: 1 } })).toThrow(
      'Expected `rateLimit.maxQueue` to be left to the `limiter` that is given or shared, got 1',
    );
  });

  test('rateLimit.maxQueue of a client that had no limiter → taken', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: false });
    expect(() => client.withOptions({ rateLimit: { maxQueue: 1 } })).not.toThrow();
  });

  test('a limiter for a client that had none → used', async () => {
    const limiter = new TokenBucketLimiter();
    const { client } = makeClient(COURIERS, { rateLimit: false });
    const limited = client.withOptions({ limiter });
    await limited.couriers.list();
    expect(limited.rateLimits()['couriers.list'].inUse).toBe(1);
  });
});

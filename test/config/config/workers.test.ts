import { afterEach, describe, expect, test, vi } from 'vitest';
import { TokenBucketLimiter } from '../../../src/limiter/token-bucket.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';

// Later test files must not get the modules that were loaded here.
afterEach(() => {
  vi.resetModules();
});

/** Loads the package in a process with this `navigator.userAgent`, and returns the limiter of a client. */
async function resolveLimiter(userAgent: string | undefined, options: TrackingClientOptions) {
  vi.stubGlobal('navigator', userAgent === undefined ? undefined : { userAgent });
  vi.resetModules();
  const { resolveConfig } = await import('../../../src/config/config.ts');
  return resolveConfig({ baseUrl: 'https://host.test/v1', apiKey: 'key', ...options }).limiter;
}

const limits = { limits: { 'couriers.list': 2 } };

describe('in a Cloudflare Worker, where a queued call could wait for ever', () => {
  test.each<[string, TrackingClientOptions, boolean]>([
    ['no options', {}, false],
    ['rateLimit: false', { rateLimit: false }, false],
    ['limits', { rateLimit: limits }, true],
    ['a limiter', { limiter: new TokenBucketLimiter() }, true],
  ])('%s → limiter: $2', async (_what, options, hasLimiter) => {
    expect((await resolveLimiter('Cloudflare-Workers', options)) !== undefined).toBe(hasLimiter);
  });
});

describe('elsewhere', () => {
  test.each<[string, string | undefined, TrackingClientOptions, boolean]>([
    ['Node 20, which has no navigator', undefined, {}, true],
    ['Node 22', 'Node.js/22', {}, true],
    ['rateLimit: false', 'Node.js/22', { rateLimit: false }, false],
    ['limits', 'Node.js/22', { rateLimit: limits }, true],
  ])('%s → limiter: $3', async (_what, userAgent, options, hasLimiter) => {
    expect((await resolveLimiter(userAgent, options)) !== undefined).toBe(hasLimiter);
  });
});

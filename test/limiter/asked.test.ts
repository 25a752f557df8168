import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { bucket, makeLimiter } from './make-limiter.ts';
import { settled } from './manual-clock.ts';

describe('acquire, as a program without types may call it', () => {
  test.each([
    ['an empty signal', { signal: '' }, 'Expected `signal` to be an AbortSignal, got an empty string'],
    ['a signal of null', { signal: null }, 'Expected `signal` to be an AbortSignal, got null'],
    ['no bucket', { bucket: null }, 'Expected `bucket` to be an object, got null'],
    [
      'the name of an endpoint as its bucket',
      { bucket: 'trackers.get' },
      'Expected `bucket` to be an object, got a string of 12 characters',
    ],
    [
      'an account that is no text',
      { bucket: { ...bucket, account: 7n } },
      'Expected `bucket.account` to be a string, got a bigint',
    ],
    [
      'a priority of its own',
      { priority: 'high' },
      'Expected `priority` to be "interactive" or "background", got a string of 4 characters',
    ],
  ])('%s → ConfigurationError, no bucket is made', async (_title, overrides, message) => {
    const { acquire, limiter } = makeLimiter();
    // Sound: that the options are wrong is what is tried.
    const wrong = acquire({ bucket: { ...bucket, account: 'other' }, ...(overrides as object) });
    await settled();
    expect(wrong.error).toBeInstanceOf(ConfigurationError);
    expect(wrong.error).toMatchObject({ message });
    expect(limiter.snapshot({ ...bucket, account: 'other' })).toBeUndefined();
  });

  test.each([
    ['null', null, 'null'],
    ['a text', 'trackers.get', 'a string of 12 characters'],
  ])('%s as options → ConfigurationError', async (_title, options, got) => {
    const { limiter } = makeLimiter();
    // @ts-expect-error: a program without types gives anything.
    await expect(limiter.acquire(options)).rejects.toThrow(
      `Expected \`options\` to be an object, got ${got}`,
    );
  });
});

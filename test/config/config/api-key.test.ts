import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { resolveConfig } from '../../../src/config/config.ts';
import { ConfigurationError } from '../../../src/errors.ts';
import { API_KEY, catchRejection, makeClient } from '../../support/make-client.ts';

/** Resolves a key that a caller without types could pass. */
const resolveSource = (apiKey: unknown) =>
  resolveConfig({ baseUrl: 'https://host.test/v1', apiKey: apiKey as string }).apiKey;

function resolveKey(apiKey: unknown): string {
  const source = resolveSource(apiKey);
  if (typeof source === 'function') throw new TypeError('Expected a key');
  return source.text;
}

/** Resolves the key source of a client, which is called once per attempt. */
function resolveKeySource(apiKey: () => unknown): () => Promise<string> {
  const source = resolveSource(apiKey);
  if (typeof source !== 'function') throw new TypeError('Expected a function');
  return async () => (await source()).text;
}

describe('a fixed key', () => {
  test.each(['key', ' key', 'key\n', '\t key \r\n'])('%j → trimmed', (value) => {
    expect(resolveKey(value)).toBe('key');
  });

  test.each([
    [undefined, '`apiKey` is missing; pass it, or set TRACKING_API_KEY'],
    ['', '`apiKey` is missing; pass it, or set TRACKING_API_KEY'],
    ['  \n', '`apiKey` is missing; pass it, or set TRACKING_API_KEY'],
    [5, 'Expected `apiKey` to be a non-empty string, got 5'],
    [{}, 'Expected `apiKey` to be a non-empty string, got an object'],
  ])('%j → ConfigurationError that names the kind, or what to set', (value, message) => {
    expect(() => resolveKey(value)).toThrow(new ConfigurationError(message));
  });

  test.each(['sec\nret', 'sec\u007fret', 'sécret', 'sec😀ret', 'sec"ret', 'sec ret', 'sec\\ret'])(
    '%j → ConfigurationError that does not print it',
    (value) => {
      expect(() => resolveKey(value)).toThrow(
        new ConfigurationError(
          `Expected \`apiKey\` to be visible ASCII characters without spaces, quotes and backslashes, got a string of ${value.length} characters`,
        ),
      );
    },
  );
});

const WITH_BEARER = ['Bearer abc-0123456789', 'bearer  abc', 'BEARER\tabc', 'Authorization: Bearer abc'];

test.each(WITH_BEARER)(
  '%j → ConfigurationError that says to remove `Bearer`, from a string or a function',
  async (key) => {
    const got = `the key alone (remove \`Bearer\`, which the client adds), got a string of ${key.length} characters`;
    const refusals = [
      await catchRejection((async () => resolveKey(key))()),
      await catchRejection(resolveKeySource(() => key)()),
    ];
    expect(refusals).toEqual([
      new ConfigurationError(`Expected \`apiKey\` to be ${got}`),
      new ConfigurationError(`Expected \`apiKey\` to return ${got}`),
    ]);
  },
);

test.each(['Bearer', 'bearer-key', 'x-Bearer'])('%j, a key of one word → accepted', (key) => {
  expect(resolveKey(key)).toBe(key);
});

describe('a function', () => {
  test('each use → called, awaited and trimmed; not called at construction', async () => {
    const keys = [' first ', Promise.resolve('second\n')];
    const source = resolveKeySource(() => keys.shift());
    expect(keys).toHaveLength(2);
    expect([await source(), await source()]).toEqual(['first', 'second']);
  });

  test.each([
    [undefined, 'a non-empty string, got undefined'],
    ['', 'a non-empty string, got an empty string'],
    [5, 'a non-empty string, got 5'],
    ['a\nb', 'visible ASCII characters without spaces, quotes and backslashes, got a string of 3 characters'],
  ])('it gives %j → ConfigurationError that speaks of the returned value', async (value, end) => {
    expect(await catchRejection(resolveKeySource(() => value)())).toEqual(
      new ConfigurationError(`Expected \`apiKey\` to return ${end}`),
    );
  });

  test('a function that throws → ConfigurationError whose cause has only the standard fields of that error', async () => {
    const failure = Object.assign(new RangeError('vault is sealed', { cause: new Error('403') }), {
      request: { headers: { 'x-vault-token': 'hvs.secret' } },
    });
    const error = await catchRejection(resolveKeySource(() => Promise.reject(failure))());
    expect(error).toMatchObject({
      name: 'ConfigurationError',
      message: 'The `apiKey` function threw an error, so nothing was sent; see `cause`',
      cause: { name: 'RangeError', message: 'vault is sealed', cause: { message: '403' } },
    });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hvs.secret');
  });

  test('a call whose key function throws → the error of the call has the cause, too', async () => {
    const { client } = makeClient(undefined, { apiKey: () => Promise.reject(new Error('vault is sealed')) });
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConfigurationError',
      cause: { message: 'vault is sealed' },
    });
  });

  test('a call whose key function returns no key → an error without a cause', async () => {
    // @ts-expect-error: a program without types may return this.
    const { client } = makeClient(undefined, { apiKey: () => 5 });
    const error = await catchRejection(client.couriers.list());
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(Object.keys(Object(error))).not.toContain('cause');
    expect('cause' in Object(error)).toBe(false);
  });

  test('a later call of the function throws an error with the earlier key → masked in `cause`', async () => {
    const readKey = resolveKeySource(
      vi
        .fn()
        .mockResolvedValueOnce(API_KEY)
        .mockRejectedValue(new Error(`cannot renew ${API_KEY}`)),
    );
    await readKey();
    expect(await catchRejection(readKey())).toMatchObject({ cause: { message: 'cannot renew [redacted]' } });
  });
});

import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { makeClient } from '../support/make-client.ts';

describe('options', () => {
  const { client } = makeClient();

  test.each([
    ['chunkSize', 0],
    ['chunkSize', 101],
    ['chunkSize', 1.5],
    ['chunkSize', Number.NaN],
    ['concurrency', 0],
    ['concurrency', Number.POSITIVE_INFINITY],
    ['onProgress', 'yes'],
    ['retryAmbiguous', 1],
    ['signal', {}],
    ['timeoutMs', 0],
    ['priority', 'urgent'],
  ])('%s %s → ConfigurationError that names it', (name, value) => {
    expect(() => client.trackers.createMany([], { [name]: value })).toThrow(ConfigurationError);
    expect(() => client.trackers.createMany([], { [name]: value })).toThrow(new RegExp(`Expected \`${name}`));
  });

  test('chunkSize 100 → is taken', () => {
    expect(() => client.trackers.createMany([], { chunkSize: 100 })).not.toThrow();
  });

  test('a misspelt option → ConfigurationError that names the right one', () => {
    expect(() => client.trackers.createMany([], { chunksize: 5 } as object)).toThrow(
      /; known are .*chunkSize/,
    );
  });

  test.each([['text'], [undefined], [{ trackingNumber: 'LA680658838NL' }]])(
    'inputs %j → ConfigurationError',
    (inputs) => {
      // @ts-expect-error no list of inputs
      expect(() => client.trackers.createMany(inputs)).toThrow(/^Expected `inputs` to be an iterable/);
    },
  );
});

import { describe, expect, test, vi } from 'vitest';
import { type BulkSummary, ConfigurationError, type TrackerInput } from '../../src/index.ts';
import {
  bulkResponse,
  bulkService,
  countStatuses,
  createAll,
  created,
  makeInputs,
  makeItem,
  refused,
  settled,
  withStatuses,
} from './bulk-service.ts';

const [first = { trackingNumber: '' }, second = { trackingNumber: '' }] = makeInputs(2);

describe('chunks', () => {
  test.each([
    [0, {}, []],
    [1, {}, [1]],
    [100, {}, [100]],
    [350, {}, [100, 100, 100, 50]],
    [5, { chunkSize: 2 }, [2, 2, 1]],
  ])('%d inputs, options %j → requests of %j', async (count, options, sizes) => {
    const inputs = makeInputs(count);
    const { outcomes, error, sent } = await createAll(created, inputs, options);
    expect(error).toBeUndefined();
    expect(sent.map((chunk) => chunk.length)).toEqual(sizes);
    const expected = inputs.map((input, index) => ({ index, input, status: 'created' }));
    expect(outcomes).toMatchObject(expected);
  });
});

describe('invalid inputs', () => {
  test('invalid inputs between valid inputs → not sent, and the rest of their chunk is sent', async () => {
    const inputs = [
      { trackingNumber: '123456789' },
      first,
      { trackingNumber: 'x' },
      { trackingNumber: 'LA680658838NL', shippingDate: '2001-01-01' },
      second,
    ];
    const { outcomes, codes, statuses, sent } = await createAll(created, inputs);
    expect(sent).toEqual([[first, second]]);
    expect(statuses).toEqual(['invalid', 'created', 'invalid', 'invalid', 'created']);
    const outdated = 'shipping_date_outdated';
    expect(codes).toEqual(['validation_error', undefined, 'validation_error', outdated, undefined]);
    expect(outcomes[2]?.input).toBe(inputs[2]);
  });

  const lazy = {
    get trackingNumber(): string {
      throw new Error('connection closed');
    },
  };
  const tooShort = "Expected `trackingNumber` to have 5 to 50 characters, got 'x'";

  test.each([
    ['null', null, 'Expected `input` to be an object, got null'],
    ['a short number', { trackingNumber: 'x' }, tooShort],
    [
      'a bigint in a field',
      { ...first, weight: 5n },
      '`input` cannot be written as JSON; remove any BigInt and any circular reference',
    ],
    [
      'a getter that throws',
      lazy,
      '`input` could not be read, because one of its getters threw an error; pass a plain object',
    ],
  ])('%s → outcome invalid, with the reason', async (_, input, message) => {
    // Sound for a test of inputs that the compiler would refuse.
    const { outcomes, sent } = await createAll(created, [input] as TrackerInput[]);
    const errors = [{ code: 'validation_error', message }];
    expect(outcomes).toEqual([{ index: 0, input, status: 'invalid', errors }]);
    expect(sent).toEqual([]);
  });
});

describe('items of the response', () => {
  test('a partial success → each input has its own status', async () => {
    const expected = ['created', 'error', 'existing', 'error'];
    const { outcomes, statuses } = await createAll(
      (inputs) => withStatuses(inputs, ...expected),
      makeInputs(4),
    );
    expect(statuses).toEqual(expected);
    expect(outcomes[1]).toMatchObject({ errors: [{ code: 'tracker_conflict', message: 'taken' }] });
    expect(outcomes[1]).not.toHaveProperty('tracker');
    expect(outcomes[2]).toMatchObject({ tracker: { trackerId: 'id-of-LP00000002X' } });
  });

  test('400 because every item failed → each input has its own error', async () => {
    const items = [makeItem(first, 'error'), makeItem(second, 'error')];
    const { codes } = await createAll(() => bulkResponse(items, 400), [first, second]);
    expect(codes).toEqual(['tracker_conflict', 'tracker_conflict']);
  });

  test('an unknown item status → outcome unknown, with the tracker', async () => {
    const { outcomes } = await createAll((inputs) => withStatuses(inputs, 'postponed'), [first]);
    expect(outcomes[0]).toMatchObject({ status: 'unknown', tracker: { trackerId: 'id-of-LP00000000X' } });
  });

  const respondWith = (...items: unknown[]) => ({ status: 201, body: { status: 'success', data: items } });

  test.each([
    ['a tracker that lacks everything but its id', { trackerId: 't-1' }, { tracker: { trackerId: 't-1' } }],
    ['a tracker without an id', {}, {}],
  ])('%s → created, with the tracker if it has an id', async (_, tracker, expected) => {
    const { outcomes } = await createAll(() => respondWith({ ...makeItem(first), tracker }), [first]);
    expect(outcomes).toEqual([{ index: 0, input: first, status: 'created', ...expected }]);
  });

  test('an item whose errors are no list → its errors are ignored, and the other items are kept', async () => {
    const odd = { ...makeItem(first, 'error'), errors: 'taken' };
    const { outcomes } = await createAll(() => respondWith(odd, makeItem(second)), [first, second]);
    expect(outcomes[0]).toEqual({ index: 0, input: first, status: 'error' });
    expect(outcomes[1]).toMatchObject({ status: 'created' });
  });

  test('items and an error for the whole request → the items decide', async () => {
    const { body } = refused(207, 'processing_error');
    const response = { status: 207, body: { ...Object(body), data: [makeItem(first)] } };
    const { statuses } = await createAll(() => response, [first]);
    expect(statuses).toEqual(['created']);
  });
});

describe('summary and progress', () => {
  test('onProgress → called after every chunk', async () => {
    const told: BulkSummary[] = [];
    await createAll(created, makeInputs(250), { onProgress: (summary) => told.push(summary) });
    expect(told.map(({ total }) => total)).toEqual([100, 200, 250]);
  });

  const fail = () => {
    throw new Error('mine');
  };

  test.each<[string, () => void]>([
    ['throws', fail],
    ['rejects', async () => fail()],
  ])('onProgress %s → a warning, and the run goes on', async (_, onProgress) => {
    const warn = vi.fn();
    const logging = { logger: { debug() {}, info() {}, warn, error() {} }, logLevel: 'warn' } as const;
    const { outcomes } = await createAll(created, makeInputs(150), { onProgress }, logging);
    await settled();
    expect(countStatuses(outcomes)).toEqual({ created: 150 });
    expect(warn).toHaveBeenCalledTimes(2);
  });
});

describe('options', () => {
  const { client } = bulkService();

  test.each([
    ['chunkSize', 0],
    ['chunkSize', 101],
    ['chunkSize', 1.5],
    ['concurrency', 0],
    ['concurrency', Number.POSITIVE_INFINITY],
    ['onProgress', 'yes'],
    ['retryAmbiguous', 1],
    ['priority', 'urgent'],
  ])('%s %s → ConfigurationError that names it', (name, value) => {
    expect(() => client.trackers.createMany([], { [name]: value })).toThrow(ConfigurationError);
    expect(() => client.trackers.createMany([], { [name]: value })).toThrow(`Expected \`${name}`);
  });

  test('a misspelt option → ConfigurationError that names the right option', () => {
    const options: object = { chunksize: 5 };
    expect(() => client.trackers.createMany([], options)).toThrow(/; known options: .*chunkSize/);
  });

  test.each(['text', undefined, null, { trackingNumber: 'LA680658838NL' }])(
    'inputs %j → refused',
    (inputs) => {
      // @ts-expect-error no list of inputs
      expect(() => client.trackers.createMany(inputs)).toThrow(/^Expected `inputs` to be an iterable/);
    },
  );
});

import { describe, expect, test, vi } from 'vitest';
import { type BulkSummary, ConfigurationError, type TrackerInput } from '../../src/index.ts';
import { deferred } from '../support/deferred.ts';
import {
  answered,
  bulkAnswer,
  bulkService,
  collect,
  countsOf,
  createAll,
  created,
  inputsOf,
  itemOf,
  refused,
  settled,
} from './bulk-service.ts';

const [first = { trackingNumber: '' }, second = { trackingNumber: '' }] = inputsOf(2);

describe('chunks', () => {
  test.each([
    [0, []],
    [1, [1]],
    [100, [100]],
    [350, [100, 100, 100, 50]],
  ])('%d inputs → requests of %j', async (count, sizes) => {
    const inputs = inputsOf(count);
    const { outcomes, error, sent } = await createAll(created, inputs);
    expect(error).toBeUndefined();
    expect(sent.map((chunk) => chunk.length)).toEqual(sizes);
    expect(outcomes.map(({ index, input, status }) => [index, input, status])).toEqual(
      inputs.map((input, index) => [index, input, 'created']),
    );
  });

  test('chunkSize 2 → two inputs a request', async () => {
    const { sent } = await createAll(created, inputsOf(5), { chunkSize: 2 });
    expect(sent.map((chunk) => chunk.length)).toEqual([2, 2, 1]);
  });

  test.each([
    [{}, 3],
    [{ concurrency: 2 }, 2],
  ])('%j → %d requests at a time', async (options, requests) => {
    let underWay = 0;
    let most = 0;
    const reply = async (inputs: readonly TrackerInput[]) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await settled();
      underWay -= 1;
      return created(inputs);
    };
    await createAll(reply, inputsOf(10), { chunkSize: 1, ...options });
    expect(most).toBe(requests);
  });

  test('the second chunk answers first → outcomes come in the order of the inputs', async () => {
    const chunk = deferred();
    const reply = async (inputs: readonly TrackerInput[], request: number) => {
      if (request === 1) await chunk.promise;
      else chunk.resolve();
      return created(inputs);
    };
    const { outcomes } = await createAll(reply, inputsOf(6), { chunkSize: 2 });
    expect(outcomes.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe('invalid inputs', () => {
  test('between valid ones → are not sent, and their chunk goes on', async () => {
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
    expect(codes).toEqual([
      'validation_error',
      undefined,
      'validation_error',
      'shipping_date_outdated',
      undefined,
    ]);
    expect(outcomes[2]?.input).toBe(inputs[2]);
  });

  const lazy = {
    get trackingNumber(): string {
      throw new Error('connection closed');
    },
  };
  const noJson = 'Expected `input` to be a JSON value, got a value without a JSON form';

  test.each([
    ['null', null, 'Expected `input` to be an object, got null'],
    [
      'a short number',
      { trackingNumber: 'x' },
      'Expected `trackingNumber` to have 5 to 50 characters, got a string of 1 character',
    ],
    ['a bigint in a field', { ...first, weight: 5n }, noJson],
    ['a getter that throws', lazy, noJson],
  ])('%s → invalid, and why', async (_, input, message) => {
    // Sound enough for a test of what the compiler would refuse.
    const { outcomes, sent } = await createAll(created, [input] as TrackerInput[]);
    const errors = [{ code: 'validation_error', message }];
    expect(outcomes).toEqual([{ index: 0, input, status: 'invalid', errors }]);
    expect(sent).toEqual([]);
  });

  test('only such, without end → come out as they are read, and nothing is sent', async () => {
    const { client, sent } = bulkService();
    function* inputs() {
      for (;;) yield { trackingNumber: 'x' };
    }
    const run = client.trackers.createMany(inputs());
    for (let count = 0; count < 300; count += 1) {
      expect(await run.next()).toMatchObject({ value: { index: count, status: 'invalid' } });
    }
    await run.return();
    expect(sent).toEqual([]);
  });

  test('an input changed after it was read → what was checked is what is sent', async () => {
    const input = { trackingNumber: 'LA680658838NL' };
    function* inputs() {
      yield input;
      input.trackingNumber = 'x';
      yield* inputsOf(1);
    }
    const { sent } = await createAll(created, inputs());
    expect(sent[0]?.[0]).toEqual({ trackingNumber: 'LA680658838NL' });
  });
});

describe('items of the response', () => {
  test('a partial answer → each input has its own status', async () => {
    const expected = ['created', 'error', 'existing', 'error'];
    const { outcomes, statuses } = await createAll((inputs) => answered(inputs, ...expected), inputsOf(4));
    expect(statuses).toEqual(expected);
    expect(outcomes[1]).toMatchObject({ errors: [{ code: 'tracker_conflict', message: 'taken' }] });
    expect(outcomes[1]).not.toHaveProperty('tracker');
    expect(outcomes[2]).toMatchObject({ tracker: { trackerId: 'id-of-LP00000002X' } });
  });

  test('400 because every item failed → each input has its own error', async () => {
    const reply = (inputs: readonly TrackerInput[]) =>
      bulkAnswer(
        inputs.map((input) => itemOf(input, 'error')),
        400,
      );
    const { codes } = await createAll(reply, inputsOf(2));
    expect(codes).toEqual(['tracker_conflict', 'tracker_conflict']);
  });

  test('a status that is new to us → unknown, with the tracker', async () => {
    const { outcomes } = await createAll((inputs) => answered(inputs, 'postponed'), [first]);
    expect(outcomes[0]).toMatchObject({ status: 'unknown', tracker: { trackerId: 'id-of-LP00000000X' } });
  });

  const answerOf = (...items: unknown[]) => ({ status: 201, body: { status: 'success', data: items } });

  test('a tracker that lacks everything but its id → created, with that id', async () => {
    const odd = { ...itemOf(first), tracker: { trackerId: 't-1' } };
    const { outcomes } = await createAll(() => answerOf(odd), [first]);
    expect(outcomes).toMatchObject([{ status: 'created', tracker: { trackerId: 't-1' } }]);
  });

  test('a tracker without an id → created, without a tracker', async () => {
    const { outcomes } = await createAll(() => answerOf({ ...itemOf(first), tracker: {} }), [first]);
    expect(outcomes[0]).toEqual({ index: 0, input: first, status: 'created' });
  });

  test('errors that are no list → the other items are not lost', async () => {
    const odd = { ...itemOf(first, 'error'), errors: 'taken' };
    const { outcomes } = await createAll(() => answerOf(odd, itemOf(second)), [first, second]);
    expect(outcomes).toMatchObject([{ status: 'error' }, { status: 'created' }]);
    expect(outcomes[0]).not.toHaveProperty('errors');
  });

  test('items and an error for the whole → the items count', async () => {
    const { body } = refused(207, 'processing_error');
    const reply = (inputs: readonly TrackerInput[]) => ({
      status: 207,
      body: { ...Object(body), data: inputs.map((input) => itemOf(input)) },
    });
    const { statuses } = await createAll(reply, [first, second]);
    expect(statuses).toEqual(['created', 'created']);
  });
});

describe('summary and progress', () => {
  test('after the end → summary() counts every input', async () => {
    const { client } = bulkService((inputs) => answered(inputs.slice(0, 3), 'created', 'existing', 'error'));
    const run = client.trackers.createMany([...inputsOf(4), { trackingNumber: 'x' }]);
    expect(run.summary()).toEqual({ total: 0, created: 0, existing: 0, error: 0, invalid: 0, unknown: 0 });
    await collect(run);
    expect(run.summary()).toEqual({ total: 5, created: 1, existing: 1, error: 1, invalid: 1, unknown: 1 });
  });

  test('onProgress → is told after every chunk', async () => {
    const told: BulkSummary[] = [];
    await createAll(created, inputsOf(250), { onProgress: (summary) => told.push(summary) });
    expect(told.map(({ total }) => total)).toEqual([100, 200, 250]);
  });

  const mine = new Error('mine');
  const throws = () => {
    throw mine;
  };

  test.each<[string, () => void]>([
    ['throws', throws],
    ['rejects', async () => throws()],
  ])('onProgress %s → a warning, and the run goes on', async (_, onProgress) => {
    const warn = vi.fn();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { outcomes } = await createAll(
      created,
      inputsOf(150),
      { onProgress },
      { logger, logLevel: 'warn' },
    );
    await settled();
    expect(countsOf(outcomes)).toEqual({ created: 150 });
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

  test('a misspelt option → ConfigurationError that names the right one', () => {
    const options: object = { chunksize: 5 };
    expect(() => client.trackers.createMany([], options)).toThrow(/; known are .*chunkSize/);
  });

  test.each(['text', undefined, { trackingNumber: 'LA680658838NL' }])('inputs %j → refused', (inputs) => {
    // @ts-expect-error no list of inputs
    expect(() => client.trackers.createMany(inputs)).toThrow(/^Expected `inputs` to be an iterable/);
  });
});

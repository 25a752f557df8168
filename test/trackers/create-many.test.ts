import { describe, expect, test } from 'vitest';
import type { TrackerInput } from '../../src/index.ts';
import {
  bulkAnswer,
  bulkService,
  collect,
  countsOf,
  gate,
  inputsOf,
  itemOf,
  settled,
} from './bulk-service.ts';

describe('chunks', () => {
  test.each([
    [0, []],
    [1, [1]],
    [100, [100]],
    [101, [100, 1]],
    [350, [100, 100, 100, 50]],
  ])('%d inputs → requests of %j', async (count, sizes) => {
    const { client, sent } = bulkService();
    const inputs = inputsOf(count);
    const { outcomes, error } = await collect(client.trackers.createMany(inputs));
    expect(error).toBeUndefined();
    expect(sent.map((chunk) => chunk.length)).toEqual(sizes);
    expect(outcomes.map(({ index, input, status }) => [index, input, status])).toEqual(
      inputs.map((input, index) => [index, input, 'created']),
    );
  });

  test('chunkSize 2 → two inputs a request', async () => {
    const { client, sent } = bulkService();
    await collect(client.trackers.createMany(inputsOf(5), { chunkSize: 2 }));
    expect(sent.map((chunk) => chunk.length)).toEqual([2, 2, 1]);
  });

  test('concurrency 2 → two requests at a time', async () => {
    let underWay = 0;
    let most = 0;
    const { client } = bulkService(async (inputs) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await settled();
      underWay -= 1;
      return bulkAnswer(inputs.map((input) => itemOf(input)));
    });
    await collect(client.trackers.createMany(inputsOf(10), { chunkSize: 1, concurrency: 2 }));
    expect(most).toBe(2);
  });

  test('the second chunk answers first → outcomes come in the order of the inputs', async () => {
    const first = gate();
    const { client } = bulkService(async (inputs, request) => {
      if (request === 1) await first.opened;
      else first.open();
      return bulkAnswer(inputs.map((input) => itemOf(input)));
    });
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(6), { chunkSize: 2 }));
    expect(outcomes.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe('items', () => {
  test('invalid inputs between valid ones → are not sent, and their chunk goes on', async () => {
    const { client, sent } = bulkService();
    const [one, other] = inputsOf(2);
    const inputs = [
      { trackingNumber: '123456789' },
      one,
      { trackingNumber: 'x' },
      other,
      { trackingNumber: 'LA680658838NL', shippingDate: '2001-01-01' },
      null,
      { trackingNumber: 'LA680658838NL', title: 'x', weight: 5n },
      // Sound enough for a test of what the compiler would refuse.
    ] as TrackerInput[];
    const { outcomes } = await collect(client.trackers.createMany(inputs));
    expect(sent).toEqual([[one, other]]);
    expect(outcomes.map(({ status, errors }) => [status, errors?.[0]?.code])).toEqual([
      ['invalid', 'validation_error'],
      ['created', undefined],
      ['invalid', 'validation_error'],
      ['created', undefined],
      ['invalid', 'shipping_date_outdated'],
      ['invalid', 'validation_error'],
      ['invalid', 'validation_error'],
    ]);
    expect(outcomes[2]?.errors?.[0]?.message).toBe(
      'Expected `trackingNumber` to have 5 to 50 characters, got a string of 1 character',
    );
    expect(outcomes[2]?.input).toBe(inputs[2]);
  });

  test('null → invalid, and why', async () => {
    const { client } = bulkService();
    // @ts-expect-error no creation request
    const { outcomes } = await collect(client.trackers.createMany([null]));
    const message = 'Expected `input` to be an object, got null';
    expect(outcomes[0]).toMatchObject({ status: 'invalid', errors: [{ message }] });
  });

  test('invalid inputs only, without end → come out as they are read, and nothing is sent', async () => {
    const { client, sent } = bulkService();
    function* inputs() {
      for (;;) yield { trackingNumber: 'x' };
    }
    let count = 0;
    for await (const { status } of client.trackers.createMany(inputs())) {
      expect(status).toBe('invalid');
      count += 1;
      if (count === 1000) break;
    }
    expect(sent).toEqual([]);
  });

  test('a partial answer → each input has its own status', async () => {
    const statuses = ['created', 'error', 'existing', 'error'];
    const { client } = bulkService((inputs) =>
      bulkAnswer(
        inputs.map((input, index) => itemOf(input, statuses[index])),
        207,
      ),
    );
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(4)));
    expect(outcomes.map(({ status }) => status)).toEqual(statuses);
    expect(outcomes[1]).toMatchObject({ errors: [{ code: 'tracker_conflict', message: 'taken' }] });
    expect(outcomes[1]).not.toHaveProperty('tracker');
    expect(outcomes[2]).toMatchObject({ tracker: { trackerId: 'id-of-LP00000002X' } });
  });

  test('400 because every item failed → each input has its own error', async () => {
    const { client } = bulkService((inputs) =>
      bulkAnswer(
        inputs.map((input) => itemOf(input, 'error')),
        400,
      ),
    );
    const { outcomes, error } = await collect(client.trackers.createMany(inputsOf(250)));
    expect(error).toBeUndefined();
    expect(countsOf(outcomes)).toEqual({ error: 250 });
  });

  test('a status that is new to us → unknown, with the tracker', async () => {
    const { client } = bulkService((inputs) => bulkAnswer(inputs.map((input) => itemOf(input, 'postponed'))));
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(1)));
    expect(outcomes[0]).toMatchObject({ status: 'unknown', tracker: { trackerId: 'id-of-LP00000000X' } });
  });

  test('an input changed after it was read → what was checked is what is sent', async () => {
    const { client, sent } = bulkService();
    const input = { trackingNumber: 'LA680658838NL' };
    function* inputs() {
      yield input;
      input.trackingNumber = 'x';
      yield* inputsOf(1);
    }
    await collect(client.trackers.createMany(inputs()));
    expect(sent[0]?.[0]).toEqual({ trackingNumber: 'LA680658838NL' });
  });
});

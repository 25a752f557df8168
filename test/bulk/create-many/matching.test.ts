import { expect, test } from 'vitest';
import type { BulkItem, TrackerInput } from '../../../src/index.ts';
import { bulkResponse, createAll } from '../bulk-service.ts';

const A = { trackingNumber: 'aaaa1111x' };
const B = { trackingNumber: 'bbbb2222x' };
const A1 = { ...A, clientTrackerId: 'order-1' };
const A2 = { ...A, clientTrackerId: 'order-2' };

/** The tracker in the item at a position of the response. */
function readTrackerAt(position: number, fields: object) {
  return { trackerId: `item-${position}`, trackingNumber: 'ZZZZ9999X', isTracked: true, ...fields };
}

/** An item that repeats its input, and whose tracker has these fields. */
const echo =
  (inputData: unknown, trackerFields = {}) =>
  (position: number) => ({
    itemStatus: 'created',
    inputData: JSON.parse(JSON.stringify(inputData)),
    tracker: readTrackerAt(position, trackerFields),
  });
/** An item without an echo, whose tracker has these fields. */
const tracker = (fields: object) => (position: number) => ({
  itemStatus: 'existing',
  tracker: readTrackerAt(position, fields),
});

/** For each input, the position of its item in the response; -1 without one. */
async function findPositions(
  inputs: readonly TrackerInput[],
  items: readonly ((position: number) => BulkItem)[],
): Promise<number[]> {
  const response = bulkResponse(items.map((item, position) => item(position)));
  const { outcomes } = await createAll(() => response, inputs);
  return outcomes.map((outcome) => Number(outcome.tracker?.trackerId.replace('item-', '') ?? -1));
}

test.each([
  ['an echo that is a bare number', [A, B], [echo('bbbb2222x'), echo('aaaa1111x')], [1, 0]],
  ['a number in upper case', [A, B], [echo({ trackingNumber: 'BBBB2222X' }), echo(A)], [1, 0]],
  ['items without echo or of other numbers', [A], [echo(null), echo(7), echo('cccc3333x'), echo(A)], [3]],
  [
    'spaces around number and id',
    [A1, A2],
    [echo(A2), echo({ trackingNumber: ` ${A1.trackingNumber} `, clientTrackerId: ' order-1 ' })],
    [1, 0],
  ],
  [
    'null and empty fields in the echo',
    [A, B],
    [echo({ ...B, clientTrackerId: '' }), echo({ ...A, clientTrackerId: null })],
    [1, 0],
  ],
  [
    'an echo with the clientTrackerId only',
    [A1, A2],
    [echo({ clientTrackerId: 'order-2' }, A), echo({ clientTrackerId: 'order-1' }, A)],
    [1, 0],
  ],
  [
    'echoes without the clientTrackerId, which the trackers have',
    [A1, A2],
    [echo(A, { clientTrackerId: 'order-2' }), echo(A, { clientTrackerId: 'order-1' })],
    [1, 0],
  ],
  [
    'echoes without the clientTrackerId, which one tracker lacks, too',
    [A1, A2],
    [echo(A), echo(A, { clientTrackerId: 'order-1' })],
    [1, 0],
  ],
  [
    'clientTrackerIds that differ by case',
    [
      { ...A, clientTrackerId: 'X' },
      { ...A, clientTrackerId: 'x' },
    ],
    [echo({ ...A, clientTrackerId: 'x' }), echo({ ...A, clientTrackerId: 'X' })],
    [1, 0],
  ],
  ['one number with and without a clientTrackerId', [A1, A], [echo(A), echo(A1)], [1, 0]],
  ['an item with a part of an input, before a complete item', [A1, A2], [echo(A), echo(A1)], [1, 0]],
  ['the item with the clientTrackerId is missing', [A1, A], [echo(A)], [-1, 0]],
  ['an echo of another clientTrackerId', [A1], [echo({ ...A, clientTrackerId: 'order-9' })], [-1]],
  [
    'an older clientTrackerId of an existing tracker',
    [A],
    [tracker({ ...A, clientTrackerId: 'older' })],
    [0],
  ],
])('%s → each input gets the item that matches it, or no item', async (_, inputs, items, positions) => {
  expect(await findPositions(inputs, items)).toEqual(positions);
});

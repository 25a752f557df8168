import { getEventListeners } from 'node:events';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BulkItem } from '../../src/schemas/bulk.ts';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import { BulkRequest, matchItems } from '../../src/trackers/bulk-request.ts';
import { TRACKER } from '../support/calls.ts';
import { created, echoOf, inputsOf, itemOf } from './bulk-service.ts';
import { callerOf } from './caller-of.ts';

/** An item that tells of its tracker only. */
function trackerOnly(
  trackingNumber: string,
  more: { clientTrackerId?: string; shipmentReference?: string } = {},
): BulkItem {
  const tracker = { ...TRACKER, trackerId: `id-${trackingNumber}`, trackingNumber, ...more };
  return { itemStatus: 'created', tracker };
}

function echo(inputData: unknown): BulkItem {
  return { itemStatus: 'created', inputData: echoOf(inputData) };
}

/** For each input, the place of its item in the answer. */
function placesOf(inputs: readonly TrackerInput[], items: readonly BulkItem[]): number[] {
  return matchItems(inputs, items).map((item) => (item === undefined ? -1 : items.indexOf(item)));
}

const [first = { trackingNumber: '' }, second = { trackingNumber: '' }, third = { trackingNumber: '' }] =
  inputsOf(3);

describe('items that name their input', () => {
  test('another order → each input has its own item', () => {
    expect(placesOf([first, second, third], [itemOf(third), itemOf(first), itemOf(second)])).toEqual([
      1, 2, 0,
    ]);
  });

  test('fewer items than inputs → the inputs without one have none', () => {
    expect(placesOf([first, second, third], [itemOf(third)])).toEqual([-1, -1, 0]);
  });

  test('items about something else, or about nothing → are left out', () => {
    const items = [
      echo({ trackingNumber: 'OTHER-12345' }),
      echo(null),
      echo(undefined),
      echo(7),
      itemOf(first),
    ];
    expect(placesOf([first, second], items)).toEqual([4, -1]);
  });

  test('only trackers, no echo → matched by tracking number in any case', () => {
    const items = [
      trackerOnly(second.trackingNumber.toUpperCase()),
      trackerOnly(first.trackingNumber.toUpperCase()),
    ];
    expect(placesOf([first, second], items)).toEqual([1, 0]);
  });

  test('an echo that is a bare tracking number → is understood', () => {
    expect(placesOf([first, second], [echo(second.trackingNumber), echo(first.trackingNumber)])).toEqual([
      1, 0,
    ]);
  });

  test.each([null, ''])(
    'an echo with %j for what the input left out → says as little as a missing field',
    (nothing) => {
      const blank = { clientTrackerId: nothing, shipmentReference: nothing };
      const items = [echo({ ...second, ...blank }), echo({ ...first, ...blank })];
      expect(placesOf([first, second], items)).toEqual([1, 0]);
    },
  );

  test('an input with undefined for a field → says as little as without it', () => {
    const existing = trackerOnly(first.trackingNumber.toUpperCase(), { clientTrackerId: 'order-1' });
    expect(placesOf([{ ...first, clientTrackerId: undefined }], [existing])).toEqual([0]);
  });

  test('clientTrackerIds that differ by their case → told apart by them', () => {
    const inputs = ['order-a', 'order-A'].map((clientTrackerId) => ({ ...first, clientTrackerId }));
    const items = ['order-A', 'order-a'].map((clientTrackerId) => echo({ clientTrackerId }));
    expect(placesOf(inputs, items)).toEqual([1, 0]);
  });

  test('only a clientTrackerId → matched by it', () => {
    const inputs = [
      { ...first, clientTrackerId: 'order-1' },
      { ...second, clientTrackerId: 'order-2' },
    ];
    expect(
      placesOf(inputs, [echo({ clientTrackerId: 'order-2' }), echo({ clientTrackerId: 'order-1' })]),
    ).toEqual([1, 0]);
  });

  test('the same item twice → counts once', () => {
    expect(placesOf([first, second], [itemOf(first), itemOf(first)])).toEqual([0, -1]);
  });

  test('an existing tracker that has a clientTrackerId the input left out → is the input’s', () => {
    const known = trackerOnly(first.trackingNumber, { clientTrackerId: 'an older one' });
    expect(placesOf([first], [known])).toEqual([0]);
  });
});

describe('inputs that share a tracking number', () => {
  const plain = { trackingNumber: 'RR123456785CN' };

  test('other clientTrackerIds, another order → told apart by them', () => {
    const inputs = ['a', 'b', 'c'].map((clientTrackerId) => ({ ...plain, clientTrackerId }));
    const items = ['c', 'a', 'b'].map((clientTrackerId) =>
      trackerOnly(plain.trackingNumber, { clientTrackerId }),
    );
    expect(placesOf(inputs, items)).toEqual([1, 2, 0]);
  });

  test('other references → told apart by them', () => {
    const inputs = ['a', 'b'].map((shipmentReference) => ({ ...plain, shipmentReference }));
    const items = ['b', 'a'].map((shipmentReference) =>
      trackerOnly(plain.trackingNumber, { shipmentReference }),
    );
    expect(placesOf(inputs, items)).toEqual([1, 0]);
  });

  test('other hints that the echo repeats → told apart by the echo', () => {
    const inputs = ['NL', 'BE'].map((destinationCountryCode) => ({ ...plain, destinationCountryCode }));
    expect(placesOf(inputs, [echo({ ...inputs[1] }), echo({ ...inputs[0] })])).toEqual([1, 0]);
  });

  test('one says nothing more than the number → is what is left when the other is told', () => {
    const inputs = [plain, { ...plain, destinationCountryCode: 'NL' }];
    expect(placesOf(inputs, [echo(plain), echo(inputs[1])])).toEqual([0, 1]);
  });

  test('nothing tells them apart → neither is guessed', () => {
    const inputs = ['NL', 'BE'].map((destinationCountryCode) => ({ ...plain, destinationCountryCode }));
    const items = [trackerOnly(plain.trackingNumber), trackerOnly(plain.trackingNumber)];
    expect(placesOf(inputs, items)).toEqual([-1, -1]);
  });

  test('one item for two that differ → neither is guessed', () => {
    const inputs = [plain, { ...plain, clientTrackerId: 'a' }];
    expect(placesOf(inputs, [trackerOnly(plain.trackingNumber)])).toEqual([-1, -1]);
  });

  test('twins that do not differ at all → share the items in their order', () => {
    expect(placesOf([plain, { ...plain }], [itemOf(plain), itemOf(plain, 'existing')])).toEqual([0, 1]);
  });

  test('an item about another clientTrackerId → is not taken for the input', () => {
    const inputs = [{ ...plain, clientTrackerId: 'a' }];
    expect(placesOf(inputs, [trackerOnly(plain.trackingNumber, { clientTrackerId: 'b' })])).toEqual([-1]);
  });
});

test('an echo of another clientTrackerId → is not taken for the input', () => {
  const input = { trackingNumber: 'RR123456785CN', clientTrackerId: 'a' };
  expect(placesOf([input], [echo({ ...input, clientTrackerId: 'b' })])).toEqual([-1]);
});

test('any inputs that differ, any order, any items missing → no input ever gets the item of another', () => {
  const input = fc.record(
    {
      trackingNumber: fc.constantFrom('AAAA1111', 'bbbb2222', 'CCCC3333'),
      clientTrackerId: fc.constantFrom('one', 'two', 'three'),
      shipmentReference: fc.constantFrom('x', 'y'),
      destinationCountryCode: fc.constantFrom('NL', 'BE'),
    },
    { requiredKeys: ['trackingNumber'] },
  );
  const cases = fc
    .uniqueArray(input, { maxLength: 12, selector: (one) => JSON.stringify(Object.entries(one).sort()) })
    .chain((inputs) => fc.tuple(fc.constant(inputs), fc.shuffledSubarray([...inputs.keys()])));
  fc.assert(
    fc.property(cases, ([inputs, answered]) => {
      const items = answered.map((index) => echo({ ...inputs[index] }));
      for (const [index, item] of matchItems(inputs, items).entries()) {
        if (item !== undefined) expect(item.inputData).toEqual(inputs[index]);
      }
    }),
  );
});

describe('inputs that the service can not tell apart', () => {
  test.each([
    ['the same number in another case', [{ trackingNumber: 'ABCDE12' }, { trackingNumber: 'abcde12' }]],
    [
      'the same fields in another order',
      [
        { trackingNumber: 'ABCDE12', courierName: 'x' },
        { courierName: 'x', trackingNumber: 'ABCDE12' },
      ],
    ],
    [
      'the same nested fields in another order',
      [
        { trackingNumber: 'ABCDE12', recipient: { name: 'a', email: 'b' } },
        { trackingNumber: 'ABCDE12', recipient: { email: 'b', name: 'a' } },
      ],
    ],
    ['an empty field and none', [{ trackingNumber: 'ABCDE12' }, { trackingNumber: 'ABCDE12', title: '' }]],
  ])('%s → each has an item', (_what, inputs) => {
    const items = inputs.map((input) => ({ ...trackerOnly('ABCDE12'), inputData: input }));
    expect(placesOf(inputs, items).toSorted()).toEqual([0, 1]);
  });

  test('a reference that comes back trimmed → found', () => {
    const input = { ...first, shipmentReference: ' order 7 ' };
    expect(placesOf([input], [echo({ ...input, shipmentReference: 'order 7' })])).toEqual([0]);
  });

  test('the same number with two references, echoed by its number only → no telling', () => {
    const inputs = [
      { ...first, shipmentReference: 'a' },
      { ...first, shipmentReference: 'b' },
    ];
    expect(placesOf(inputs, [echo({ trackingNumber: first.trackingNumber })])).toEqual([-1, -1]);
  });
});

describe('a reference alone', () => {
  test('echoed without the number → no proof that the item is about the input', () => {
    expect(placesOf([{ ...first, shipmentReference: 'a' }], [echo({ shipmentReference: 'a' })])).toEqual([
      -1,
    ]);
  });
});

test('a request that is over → leaves no listener on the signal of its run, which may send many more', async () => {
  const { signal } = new AbortController();
  await new BulkRequest(signal).send(callerOf(created([first])), [first], {});
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

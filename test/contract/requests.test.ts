// What the client sends, against schemas that share nothing with its own.
import fc from 'fast-check';
import type { TrackingClient } from 'tracking-client';
import { describe, expect, test } from 'vitest';
import { catchRejection, makeClient } from '../support/make-client.ts';
import * as samples from './support/samples.ts';
import { findBreaches, type SchemaName } from './support/schemas.ts';

const NUMBER = { trackingNumber: 'RR123456785CN' };
const tracker = { status: 201, body: { data: { tracker: samples.TRACKER } } };

type Send = (client: TrackingClient, fields: object) => PromiseLike<unknown>;
const REQUESTS: readonly (readonly [what: string, schema: SchemaName, send: Send])[] = [
  ['create', 'creationRequest', ({ trackers }, fields) => trackers.create({ ...NUMBER, ...fields })],
  ['track', 'creationRequest', ({ trackers }, fields) => trackers.track({ ...NUMBER, ...fields })],
  [
    'createBulk',
    'creationRequest',
    ({ trackers }, fields) => trackers.createBulk([{ ...NUMBER, ...fields }]),
  ],
  ['update', 'updateRequest', ({ trackers }, fields) => trackers.update('t1', fields)],
  ['search', 'searchRequest', ({ tracking }, fields) => tracking.search({ ...NUMBER, ...fields })],
];

/** Makes a function that returns the body which the client sends, or undefined if it refuses the input. */
function makeSend(call: Send) {
  const { client, requests } = makeClient(tracker);
  return async (fields: object): Promise<unknown> => {
    await Promise.resolve(call(client, fields)).catch(() => {});
    const [request] = requests.splice(0);
    return request === undefined ? undefined : [JSON.parse(request.body)].flat()[0];
  };
}

const textNear = (max: number, unit: fc.Arbitrary<string>) =>
  fc
    .oneof(fc.constantFrom(0, 1, max - 1, max, max + 1), fc.nat(max + 20))
    .chain((length) => fc.string({ unit, minLength: length, maxLength: length }));
const letters = fc.constantFrom(...'aZ0 -_./', 'é', '#');
const country = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'aZ'), maxLength: 4 }),
  fc.constantFrom('us', 'USA', 'de ', '1A'),
);
const name = textNear(100, letters);
const SHARED = {
  originCountryCode: country,
  destinationCountryCode: country,
  destinationPostCode: textNear(32, letters),
  courierCode: fc.array(fc.constantFrom('us-post', 'fr-post'), { maxLength: 4 }),
};
const NAMED = { courierName: textNear(200, letters), trackingUrl: textNear(1000, letters) };
const FIELDS: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>> = {
  creationRequest: {
    ...SHARED,
    ...NAMED,
    clientTrackerId: textNear(100, letters),
    shipmentReference: textNear(100, letters),
    orderNumber: textNear(50, letters),
    title: textNear(255, letters),
    recipient: fc.record({ name }),
  },
  updateRequest: {
    ...SHARED,
    ...NAMED,
    isSubscribed: fc.boolean(),
    recipient: fc.record({ name, email: fc.constant('ada@example.test') }, { requiredKeys: ['name'] }),
  },
  searchRequest: SHARED,
};

/** Country codes as they are sent. */
function inUpperCase(fields: Readonly<Record<string, unknown>>): object {
  const codes = Object.entries(fields).filter(([field]) => field.endsWith('CountryCode'));
  return {
    ...fields,
    ...Object.fromEntries(codes.map(([field, code]) => [field, String(code).toUpperCase()])),
  };
}

describe.each(REQUESTS)('trackers.%s', (_what, schema, call) => {
  test.each(Object.entries(FIELDS[schema] ?? {}))(
    'any %s → sent exactly if the contract allows it',
    async (field, values) => {
      const send = makeSend(call);
      await fc.assert(
        fc.asyncProperty(values, async (value) => {
          const fields = { [field]: value };
          const wire = { ...(schema === 'updateRequest' ? {} : NUMBER), ...inUpperCase(fields) };
          const isAllowed = findBreaches(schema, wire).length === 0;
          expect(await send(fields)).toEqual(isAllowed ? wire : undefined);
        }),
        { numRuns: 40 },
      );
    },
  );
});

test('recipient.email in an update → refused before anything is sent, without its text', async () => {
  const { client, requests } = makeClient(tracker);
  const email = 'ada@example.test';
  // A caller without types could pass this.
  const update = Reflect.apply(client.trackers.update, client.trackers, ['t1', { recipient: { email } }]);
  const error = await catchRejection(update);
  expect(String(error)).toContain('`recipient.email` to be left out (an update cannot change it)');
  expect(String(error)).not.toContain(email);
  expect(requests).toEqual([]);
});

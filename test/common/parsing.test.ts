import fc from 'fast-check';
import {
  buildCourier,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from 'tracking-client/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { errorMap } from '../../src/common/messages.ts';
import { safeParse } from '../../src/common/parsing.ts';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { eventsMessageSchema, otherMessageSchema, proofOfDeliverySchema } from '../../src/schemas/webhook.ts';

/** A schema is compiled after fewer uses than this. */
const COMPILED_AFTER = 200;

const RECEIVED: Readonly<Record<string, z.ZodType>> = {
  ...Object.fromEntries(
    ENDPOINT_NAMES.map((name) => {
      const { response }: Endpoint = endpoints[name];
      return [name, response.schema];
    }),
  ),
  'events of a webhook': eventsMessageSchema,
  'proof of delivery of a webhook': proofOfDeliverySchema,
  'other item of a webhook': otherMessageSchema,
};

const RECORDS = [
  buildTracker(),
  buildTracking(),
  buildWebhookMessage(),
  buildProofOfDelivery(),
  buildCourier(),
];

/** Records as the service sends them, with a field lost, changed or added somewhere, and anything else JSON holds. */
const received = fc
  .record({
    record: fc.constantFrom<unknown>(...RECORDS, ...RECORDS.map((record) => [record, record])),
    path: fc.array(fc.nat({ max: 20 }), { maxLength: 5 }),
    value: fc.oneof(fc.jsonValue(), fc.constant(undefined)),
  })
  .map(({ record, path, value }) => {
    const copy: unknown = structuredClone(record);
    let place: unknown = copy;
    for (const step of path) {
      if (typeof place !== 'object' || place === null) break;
      const keys = [...Object.keys(place), 'addedLater'];
      const key = keys[step % keys.length] ?? 'addedLater';
      const inner: unknown = Reflect.get(place, key);
      if (typeof inner === 'object' && inner !== null && step % 3 !== 0) place = inner;
      else Reflect.set(place, key, value);
    }
    return copy;
  });

describe('safeParse', () => {
  it('the first use → zod generates no code; many uses → a compiled schema', () => {
    const schema = z.object({ a: z.string() });
    const ofZod = vi.spyOn(schema, 'safeParse');
    safeParse(schema, { a: 'b' });
    expect(ofZod).toHaveBeenCalledExactlyOnceWith({ a: 'b' }, { jitless: true });
    for (let use = 0; use < COMPILED_AFTER; use += 1) safeParse(schema, { a: 'b' });
    ofZod.mockClear();
    expect(safeParse(schema, { a: 'b' })).toMatchObject({ data: { a: 'b' } });
    expect(ofZod).not.toHaveBeenCalled();
  });

  it.each(Object.entries(RECEIVED))('%s, any value → the result of zod, on every use', (_, schema) => {
    // The clone has no uses yet, so it is not compiled at first.
    const used = schema.clone();
    const options = { error: errorMap('data') };
    fc.assert(
      fc.property(fc.oneof(received, fc.jsonValue()), (value) => {
        const expected = schema.safeParse(structuredClone(value), options);
        const found = safeParse(used, value, options);
        expect(found.data).toEqual(expected.data);
        expect(found.error?.issues).toEqual(expected.error?.issues);
      }),
      { numRuns: COMPILED_AFTER + 300 },
    );
  });
});

import fc from 'fast-check';
import {
  buildCourier,
  buildProofOfDelivery,
  buildTracker,
  buildTracking,
  buildWebhookMessage,
} from 'tracking-client/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { compileWhenHot, errorMap } from '../../src/common/validation.ts';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../src/endpoints.ts';
import { eventsMessageSchema, otherMessageSchema, proofOfDeliverySchema } from '../../src/schemas/webhook.ts';

/** More uses than a schema needs before it is compiled. */
const MANY_USES = 200;

function compileByUse(schema: z.ZodType): z.ZodType {
  for (let use = 0; use < MANY_USES; use += 1) compileWhenHot(schema);
  return compileWhenHot(schema);
}

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

describe('compileWhenHot', () => {
  it('a schema that is used often → a compiled schema, always the same one', () => {
    const schema = z.object({ a: z.string() });
    const compiled = compileByUse(schema);
    expect(compiled).not.toBe(schema);
    expect(compileWhenHot(schema)).toBe(compiled);
  });

  it.each(Object.entries(RECEIVED))('%s, any value → same result when compiled', (_, schema) => {
    const compiled = compileByUse(schema);
    fc.assert(
      fc.property(fc.oneof(received, fc.jsonValue()), (value) => {
        const options = { error: errorMap('data') };
        const expected = schema.safeParse(structuredClone(value), options);
        const found = compiled.safeParse(value, options);
        expect(found.data).toEqual(expected.data);
        expect(found.error?.issues).toEqual(expected.error?.issues);
      }),
      { numRuns: 300 },
    );
  });
});

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TrackerInput } from '../../src/index.ts';
import { networkFailure } from '../support/make-client.ts';
import { useVirtualTime } from '../support/virtual-time.ts';
import {
  bulkResponse,
  bulkService,
  collect,
  created,
  inVirtualTime,
  makeInputs,
  makeItem,
  refused,
  withStatuses,
} from './bulk-service.ts';

/** The possible outcomes of a request. */
const FATES = {
  created,
  shuffled: (inputs: readonly TrackerInput[]) =>
    bulkResponse(inputs.map((input) => makeItem(input)).reverse()),
  partial: (inputs: readonly TrackerInput[]) =>
    withStatuses(inputs, ...inputs.map((_, index) => (index % 2 ? 'error' : 'existing'))),
  fewer: (inputs: readonly TrackerInput[]) => bulkResponse(inputs.slice(1).map((input) => makeItem(input))),
  reset: () => networkFailure('ECONNRESET'),
  neverSent: () => networkFailure('ECONNREFUSED'),
  serverError: () => ({ status: 503, body: '' }),
  cutOff: () => ({ status: 201, body: '{"status":' }),
  tooMany: () => ({ status: 429, body: '', headers: { 'retry-after': '0' } }),
  refused: () => refused(400, 'processing_error'),
  quota: () => refused(403, 'quota_limit_reached'),
};
type Fate = keyof typeof FATES;

const scenario = fc.record({
  count: fc.integer({ min: 0, max: 60 }),
  invalidEvery: fc.integer({ min: 2, max: 9 }),
  chunkSize: fc.integer({ min: 1, max: 12 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  retryAmbiguous: fc.boolean(),
  // Sound: the keys of an object literal are exactly its `keyof`.
  fates: fc.array(fc.constantFrom(...(Object.keys(FATES) as Fate[])), { minLength: 1, maxLength: 12 }),
  isAsync: fc.boolean(),
  breaksAt: fc.option(fc.nat({ max: 70 })),
});

test('any failures, sources and chunks → exactly one outcome for every input read, in order', async () => {
  useVirtualTime();
  await fc.assert(
    fc.asyncProperty(scenario, async ({ count, invalidEvery, fates, isAsync, breaksAt, ...options }) => {
      const inputs = makeInputs(count).map((input, index) =>
        index % invalidEvery === 1 ? { trackingNumber: 'x' } : input,
      );
      const end = Math.min(breaksAt ?? count, count);
      function* source() {
        yield* inputs.slice(0, end);
        if (breaksAt !== null) throw new Error('source');
      }
      async function* asyncSource() {
        yield* source();
      }
      const sentTimes = new Map<string, number>();
      const { client } = bulkService(
        (chunk, request) => {
          for (const { trackingNumber } of chunk) {
            sentTimes.set(trackingNumber, (sentTimes.get(trackingNumber) ?? 0) + 1);
          }
          return FATES[fates[request % fates.length] ?? 'created'](chunk);
        },
        { retry: { retries: 2 } },
      );
      const run = client.trackers.createMany(isAsync ? asyncSource() : source(), options);
      const { outcomes, error } = await inVirtualTime(collect(run));

      expect(error).toEqual(breaksAt === null ? undefined : new Error('source'));
      expect(outcomes.map(({ index }) => index)).toEqual([...inputs.slice(0, end).keys()]);
      for (const { index, input, status, tracker } of outcomes) {
        expect(input).toBe(inputs[index]);
        expect(status === 'invalid').toBe(input.trackingNumber === 'x');
        const number = input.trackingNumber.toUpperCase();
        if (tracker !== undefined) expect(tracker.trackingNumber).toBe(number);
        if (status === 'created' || status === 'existing') expect(tracker?.trackerId).toBe(`id-of-${number}`);
        if (status === 'unknown' || status === 'created')
          expect(sentTimes.get(input.trackingNumber)).toBeGreaterThan(0);
      }
      expect(run.summary().total).toBe(end);
    }),
    { numRuns: 40 },
  );
});

test('an abort at any moment → exactly one outcome for every input sent, then the reason', async () => {
  const cases = fc.record({
    abortsAtRequest: fc.integer({ min: 1, max: 8 }),
    chunkSize: fc.integer({ min: 1, max: 7 }),
    concurrency: fc.integer({ min: 1, max: 4 }),
    succeedsBefore: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ abortsAtRequest, succeedsBefore, ...options }) => {
      const controller = new AbortController();
      const reason = new Error('enough');
      const { client, sent } = bulkService((chunk, request) => {
        if (request < abortsAtRequest) return succeedsBefore ? created(chunk) : networkFailure('ECONNRESET');
        controller.abort(reason);
        return created(chunk);
      });
      const run = client.trackers.createMany(makeInputs(200), { ...options, signal: controller.signal });
      const { outcomes, error } = await collect(run);

      expect(error).toBe(reason);
      expect(outcomes.map(({ index }) => index)).toEqual([...outcomes.keys()]);
      const told = new Set(outcomes.map(({ input }) => input.trackingNumber));
      expect(sent.flat().filter(({ trackingNumber }) => !told.has(trackingNumber))).toEqual([]);
      const wasSent = new Set(sent.flat().map(({ trackingNumber }) => trackingNumber));
      for (const { status, input } of outcomes) {
        if (!wasSent.has(input.trackingNumber)) expect(status).toBe('error');
      }
    }),
    { numRuns: 30 },
  );
});

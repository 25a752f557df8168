import { vi } from 'vitest';
import type { CreateManyOptions, TrackerInputs } from '../../src/bulk/create-many.ts';
import type { BulkItem, BulkOutcome, TrackerInput } from '../../src/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { makeClient, type StubResponse, toResponse } from '../support/make-client.ts';

/** Valid inputs with tracking numbers of their own. */
export function makeInputs(count: number, from = 0): TrackerInput[] {
  return Array.from({ length: count }, (_, index) => ({
    trackingNumber: `lp${String(from + index).padStart(8, '0')}x`,
  }));
}

/** The item of a bulk response about one input. */
export function makeItem(input: TrackerInput, itemStatus = 'created'): BulkItem {
  const trackingNumber = input.trackingNumber.toUpperCase();
  const inputData = JSON.parse(JSON.stringify(input));
  if (itemStatus === 'error') {
    return { itemStatus, inputData, tracker: null, errors: [{ code: 'tracker_conflict', message: 'taken' }] };
  }
  const tracker = { trackerId: `id-of-${trackingNumber}`, trackingNumber, isTracked: true };
  return { itemStatus, inputData, tracker, errors: null };
}

/** A response of the bulk endpoint about these items. */
export function bulkResponse(items: readonly BulkItem[], status = 201): StubResponse {
  const name = status === 201 ? 'success' : status === 207 ? 'partial' : 'error';
  return { status, body: { status: name, summary: null, data: items, error: null } };
}

/** A response whose items have these statuses, in the order of the inputs. */
export function withStatuses(inputs: readonly TrackerInput[], ...statuses: string[]): StubResponse {
  const items = inputs.map((input, index) => makeItem(input, statuses[index]));
  return bulkResponse(items, 207);
}

export function created(inputs: readonly TrackerInput[]): StubResponse {
  return bulkResponse(inputs.map((input) => makeItem(input)));
}

/** A response that refuses the request as a whole, in the bulk endpoint's own envelope. */
export function refused(status: number, code: string): StubResponse {
  return { status, body: { status: 'error', summary: null, data: null, error: { code, message: 'no' } } };
}

/** A failure in the envelope of the other endpoints. */
export function failed(status: number, code: string): StubResponse {
  return { status, body: { errors: [{ code, message: 'no' }], data: null } };
}

type Respond = (inputs: readonly TrackerInput[], request: number) => Result | Promise<Result>;
type Result = StubResponse | Error;

/**
 * A scripted bulk endpoint, and a client for it that does not repeat failed requests.
 *
 * @param respond - builds the response to the n-th request, from 1; default: everything is created
 */
export function bulkService(respond: Respond = created, options: TrackingClientOptions = {}) {
  /** The inputs of each request. */
  const sent: TrackerInput[][] = [];
  const { client } = makeClient(
    async (request) => {
      // The body is what this client sent: an array of creation requests.
      const inputs = (await request.json()) as TrackerInput[];
      sent.push(inputs);
      const response = await respond(inputs, sent.length);
      if (response instanceof Error) throw response;
      return toResponse(response);
    },
    { retry: false, ...options },
  );
  return { client, sent };
}

/** Reads a run to its end, or to its error. */
export async function collect(run: AsyncIterable<BulkOutcome>) {
  const outcomes: BulkOutcome[] = [];
  let error: unknown;
  try {
    for await (const outcome of run) outcomes.push(outcome);
  } catch (caught) {
    error = caught;
  }
  return {
    outcomes,
    error,
    statuses: outcomes.map(({ status }) => status),
    codes: outcomes.map(({ errors }) => errors?.[0]?.code),
  };
}

/** Reads a run of `createMany` over such a service to its end, or to its error. */
export async function createAll(
  respond: Respond | undefined,
  inputs: TrackerInputs,
  options: CreateManyOptions = {},
  clientOptions: TrackingClientOptions = {},
) {
  const { client, sent } = bulkService(respond, clientOptions);
  return { sent, ...(await collect(client.trackers.createMany(inputs, options))) };
}

/** Awaits a run in virtual time, so that the waits between attempts take no real time. */
export async function inVirtualTime<T>(outcome: Promise<T>, ms = 600_000): Promise<T> {
  await vi.advanceTimersByTimeAsync(ms);
  return await outcome;
}

/** Counts the outcomes with each status. */
export function countStatuses(outcomes: readonly BulkOutcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Resolves when everything has run that needs no timer. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

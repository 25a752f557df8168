import fc from 'fast-check';
import type { BulkItem, BulkOutcome, TrackerInput } from '../../src/index.ts';
import { bulkResponse, failed, makeItem, refused } from '../bulk/bulk-service.ts';
import { makeCounter } from '../support/counting.ts';
import type { Made } from '../support/made.ts';
import { makeClient, networkFailure, toResponse } from '../support/make-client.ts';
import { must, printed } from './harness.ts';
import { Problems, pause, scheduleProperty } from './virtual-time.ts';

const LIMIT_MS = 24 * 3_600_000;
const TIMEOUT_MS = 5_000;
const MAX_SOURCE_DELAY_MS = 3_000;
/** Requests per second that the service allows. */
const LIMIT_PER_SECOND = 3;

/** The service refuses these requests as a whole and creates nothing. */
const REFUSALS = {
  validation: failed(422, 'validation_error'),
  key: failed(401, 'auth_invalid_api_key'),
  quota: refused(403, 'quota_limit_reached'),
  firewall: { status: 403, body: '<html>no</html>', headers: { 'content-type': 'text/html' } },
  tooMany: { status: 429, body: '', headers: { 'retry-after': '2' } },
};
/** After these refusals, the run sends nothing more. */
const ACCOUNT_REFUSALS: readonly string[] = ['key', 'quota'];

/** After these, nobody knows whether the service has created anything. */
const DOUBTS = ['serverError', 'reset', 'hangs', 'cutBody', 'brokenBody', 'html'] as const;

/** What happens to one request. `unreachable` requests never get to the service; `answered` ones are carried out. */
const fate = fc.record({
  kind: fc.oneof(
    { weight: 3, arbitrary: fc.constant('answered' as const) },
    {
      weight: 4,
      // Sound: the keys of an object literal are exactly its `keyof`.
      arbitrary: fc.constantFrom(...(Object.keys(REFUSALS) as (keyof typeof REFUSALS)[])),
    },
    { weight: 4, arbitrary: fc.constantFrom(...DOUBTS) },
    { weight: 1, arbitrary: fc.constant('unreachable' as const) },
  ),
  tookMs: fc.constantFrom(0, 40, 900, 4_000),
  status: fc.constantFrom(200, 201, 207),
  serverStatus: fc.constantFrom(408, 500, 502, 503, 504),
  /** The answer lacks each n-th item. Inputs that look the same have theirs, or none. */
  lacks: fc.constantFrom(undefined, undefined, 1, 2, 3),
  order: fc.array(fc.nat(20), { maxLength: 12 }),
  repeats: fc.boolean(),
  hasForeign: fc.boolean(),
  /** The field in which the answer repeats a number that only one input has. */
  echo: fc.constantFrom('inputData', 'text', 'tracker'),
});
type Fate = Made<typeof fate>;

const row = fc.record({
  number: fc.nat(10),
  clientTrackerId: fc.constantFrom(undefined, undefined, 'a', 'b'),
  isInvalid: fc.constantFrom(false, false, false, true),
  itemStatus: fc.constantFrom('created', 'created', 'existing', 'error'),
});

const schedule = fc.record({
  rows: fc.array(row, { maxLength: 30, size: 'max' }),
  fates: fc.array(fate, { maxLength: 20, size: 'max' }),
  chunkSize: fc.integer({ min: 1, max: 7 }),
  concurrency: fc.constantFrom(undefined, 1, 2, 4),
  retries: fc.constantFrom(0, 1, 3),
  retryAmbiguous: fc.constantFrom(false, false, true),
  rateLimit: fc.constantFrom<(false | { readonly maxQueue?: number })[]>(false, {}, { maxQueue: 2 }),
  sourceDelayMs: fc.constantFrom(undefined, 0, 200, MAX_SOURCE_DELAY_MS),
  sourceBreaksAt: fc.option(fc.nat(30), { freq: 4 }),
  readMs: fc.constantFrom(0, 0, 100, 2_000),
  abortsAtMs: fc.option(fc.nat(20_000), { freq: 4 }),
  leavesAfter: fc.option(fc.integer({ min: 1, max: 20 }), { freq: 4 }),
});
type Schedule = Made<typeof schedule>;

/** What the service knows about one input. */
interface Facts {
  readonly input: TrackerInput;
  readonly isInvalid: boolean;
  readonly itemStatus: string;
  timesSent: number;
  /** A request with it is under way. */
  isOpen: boolean;
  /** The service may have created its tracker, and no answer has told. */
  isInDoubt: boolean;
  told: string | undefined;
}

/** Builds the inputs; the title identifies each, because numbers and ids come several times. */
function makeFacts(rows: Schedule['rows']): Facts[] {
  return rows.map(({ number, clientTrackerId, isInvalid, itemStatus }, index) => ({
    input: {
      trackingNumber: isInvalid ? 'x' : `LP${String(number).padStart(8, '0')}X`,
      title: `row ${index}`,
      ...(clientTrackerId !== undefined && { clientTrackerId }),
    },
    isInvalid,
    itemStatus,
    timesSent: 0,
    isOpen: false,
    isInDoubt: false,
    told: undefined,
  }));
}

/** A service that carries out each request as its fate says. */
class Service extends Problems {
  readonly #schedule: Schedule;
  readonly #facts: readonly Facts[];
  readonly #fates: Iterator<Fate>;
  readonly #counter = makeCounter('sliding', LIMIT_PER_SECOND);
  #underWay = 0;
  /** No new input may be sent after this time. */
  closedAt = Number.POSITIVE_INFINITY;

  constructor(schedule: Schedule, facts: readonly Facts[]) {
    super();
    this.#schedule = schedule;
    this.#facts = facts;
    this.#fates = schedule.fates.values();
  }

  async respond(request: Request): Promise<Response> {
    // The body is what this client sent: an array of creation requests.
    const sent = (await request.json()) as TrackerInput[];
    const rows = sent.flatMap(({ title }) => this.#facts.find(({ input }) => input.title === title) ?? []);
    this.#noteRequest(rows, sent.length);
    const { value: fate } = this.#fates.next();
    const kind = fate?.kind ?? 'answered';
    this.#underWay += 1;
    for (const facts of rows) {
      facts.timesSent += 1;
      facts.isOpen = kind !== 'unreachable';
    }
    try {
      await pause(kind === 'hangs' ? LIMIT_MS : (fate?.tookMs ?? 0), request.signal);
      return this.#answer(rows, kind, fate);
    } catch (error) {
      // The client has given up, or the connection was lost.
      if (kind !== 'unreachable') for (const facts of rows) facts.isInDoubt = true;
      throw error;
    } finally {
      this.#underWay -= 1;
      for (const facts of rows) facts.isOpen = false;
    }
  }

  /** The run has ended, so requests that were under way must be aborted by now. */
  noteEnd(): void {
    this.note(this.#underWay === 0, () => `${this.#underWay} requests go on after the end`);
  }

  #noteRequest(rows: readonly Facts[], count: number): void {
    const { chunkSize, concurrency, retryAmbiguous, rateLimit } = this.#schedule;
    const said = () => rows.map(({ input }) => input.title).join();
    const now = performance.now();
    this.note(rows.length === count && count >= 1 && count <= chunkSize, () => `a chunk of ${said()}`);
    this.note(this.#underWay < (concurrency ?? 10), () => `${this.#underWay} requests before this one`);
    const isAllowed = rateLimit === false || this.#counter.tryCount(now);
    this.note(isAllowed, () => 'more requests than the limit allows');
    const isLate = now > this.closedAt && rows.some(({ timesSent }) => timesSent === 0);
    this.note(!isLate, () => `${said()} sent after the end`);
    for (const { input, isInvalid, isOpen, isInDoubt, told } of rows) {
      this.note(!isInvalid, () => `an invalid input was sent: ${input.title}`);
      const mayBeDone = isOpen || told !== undefined || (isInDoubt && !retryAmbiguous);
      this.note(!mayBeDone, () => `${input.title} was sent again, and may be done`);
    }
  }

  #answer(rows: readonly Facts[], kind: Fate['kind'], fate: Fate | undefined): Response {
    if (kind === 'unreachable') throw networkFailure('ECONNREFUSED');
    if (kind === 'reset' || kind === 'hangs') throw networkFailure('ECONNRESET');
    if (kind in REFUSALS) {
      if (ACCOUNT_REFUSALS.includes(kind)) this.closedAt = Math.min(this.closedAt, performance.now());
      // Sound: it was just checked.
      return toResponse(REFUSALS[kind as keyof typeof REFUSALS]);
    }
    const items = this.#buildItems(rows, fate);
    const told = kind === 'answered' ? items : [];
    for (const facts of rows) {
      const item = told.find(({ row }) => row === facts);
      facts.isInDoubt ||= item === undefined;
      facts.told = item?.item.itemStatus ?? undefined;
    }
    if (kind === 'serverError') return toResponse({ status: fate?.serverStatus ?? 500, body: '' });
    const response = bulkResponse(
      items.map(({ item }) => item),
      fate?.status ?? 201,
    );
    if (kind === 'answered') return toResponse(response);
    const text = JSON.stringify(response.body);
    if (kind === 'cutBody') return toResponse({ ...response, body: text.slice(0, -2) });
    if (kind === 'html')
      return toResponse({ body: '<html>hello</html>', headers: { 'content-type': 'text/html' } });
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text.slice(0, text.length / 2)));
      },
      pull(controller) {
        controller.error(networkFailure('ECONNRESET'));
      },
    });
    return new Response(body, { status: 201, headers: { 'content-type': 'application/json' } });
  }

  /** Builds the items of an answer. Inputs that look the same have theirs in order, or none (docs/service.md 4.4). */
  #buildItems(rows: readonly Facts[], fate: Fate | undefined): { row?: Facts; item: BulkItem }[] {
    const { lacks, order = [], repeats = false, hasForeign = false, echo = 'inputData' } = fate ?? {};
    const numberOf = ({ input }: Facts) => Number(input.trackingNumber.replaceAll(/\D/g, ''));
    // Inputs look the same if both their number and their id are the same.
    const identityOf = (facts: Facts) =>
      3 * numberOf(facts) + (facts.input.clientTrackerId?.charCodeAt(0) ?? 0);
    const place = (facts: Facts) => order[identityOf(facts) % order.length] ?? 0;
    const kept = rows
      // A repeated item could be taken for the item of another id that is missing.
      .filter((facts) => lacks === undefined || repeats || identityOf(facts) % lacks !== 0)
      .toSorted((a, b) => place(a) - place(b));
    const items: { row?: Facts; item: BulkItem }[] = kept.map((facts) => {
      const item = makeItem(facts.input, facts.itemStatus);
      const isAlone = this.#facts.filter((other) => numberOf(other) === numberOf(facts)).length === 1;
      return { row: facts, item: isAlone ? withEcho(item, facts.input, echo) : item };
    });
    if (repeats) items.push(...items.slice(0, 2).map(({ item }) => ({ item })));
    if (hasForeign) items.unshift({ item: makeItem({ trackingNumber: 'LP99999999Z' }) });
    return items;
  }
}

function withEcho(item: BulkItem, { trackingNumber }: TrackerInput, echo: Fate['echo']): BulkItem {
  if (echo === 'inputData' || (echo === 'tracker' && item.tracker === null)) return item;
  // The service may send a text in place of the object.
  if (echo === 'text') return { ...item, inputData: trackingNumber.toLowerCase() as unknown as null };
  return { ...item, inputData: null };
}

/** Plays a schedule; rejects if an outcome does not fit what the service did, or a request was not allowed. */
async function play(input: Schedule): Promise<void> {
  const { retries, abortsAtMs, leavesAfter, sourceBreaksAt, sourceDelayMs, readMs } = input;
  const { chunkSize, concurrency, retryAmbiguous, rateLimit } = input;
  const all = makeFacts(input.rows);
  const service = new Service(input, all);
  const { client } = makeClient((request) => service.respond(request), {
    rateLimit,
    retry: { retries },
    timeoutMs: TIMEOUT_MS,
  });
  const reason = new Error('the caller aborts');
  const failure = new Error('the source fails');
  const end = Math.min(sourceBreaksAt ?? all.length, all.length);
  let isSourceOpen = false;
  function* source(): Generator<TrackerInput> {
    isSourceOpen = true;
    try {
      yield* all.slice(0, end).map((facts) => facts.input);
      if (sourceBreaksAt !== null) throw failure;
    } finally {
      isSourceOpen = false;
    }
  }
  async function* slowSource(): AsyncGenerator<TrackerInput> {
    for (const one of source()) {
      await pause(sourceDelayMs ?? 0);
      yield one;
    }
  }

  const controller = new AbortController();
  const abort = () => {
    service.closedAt = Math.min(service.closedAt, performance.now());
    controller.abort(reason);
  };
  const timer = abortsAtMs === null ? undefined : setTimeout(abort, abortsAtMs);
  const { signal } = controller;
  const run = client.trackers.createMany(sourceDelayMs === undefined ? source() : slowSource(), {
    ...{ chunkSize, concurrency, retryAmbiguous, signal },
  });
  const outcomes: BulkOutcome[] = [];
  let error: unknown;
  try {
    for await (const outcome of run) {
      outcomes.push(outcome);
      checkOutcome(outcome, all[outcomes.length - 1], outcomes.length - 1, signal.aborted);
      if (outcomes.length === leavesAfter) break;
      if (readMs > 0) await pause(readMs);
    }
  } catch (caught) {
    error = caught;
  }
  clearTimeout(timer);
  service.closedAt = Math.min(service.closedAt, performance.now());
  const hasLeft = outcomes.length === leavesAfter;
  if (hasLeft) must(error === undefined, () => printed(error));
  else {
    // A source that has failed before the abort may end the run with its own error.
    const ends = [...(signal.aborted ? [reason] : []), sourceBreaksAt === null ? undefined : failure];
    must(
      ends.some((end) => end === error) && (error !== undefined || !signal.aborted),
      () => `ended with ${printed(error)}`,
    );
  }
  // After an abort, the inputs that were sent have outcomes. Without one, all inputs have.
  const known = hasLeft ? outcomes.length : all.findLastIndex(({ timesSent }) => timesSent > 0) + 1;
  const expected = hasLeft || signal.aborted ? known : end;
  must(outcomes.length >= expected, () => `${outcomes.length} outcomes of ${expected} inputs`);
  if (!hasLeft) checkSummary(run.summary(), outcomes);
  await pause(1);
  service.noteEnd();
  // Later requests would be noted, and a slow source ends.
  await pause(10 * MAX_SOURCE_DELAY_MS);
  service.check();
  must(!isSourceOpen, () => 'the source was not closed');
}

function checkOutcome(outcome: BulkOutcome, facts: Facts | undefined, index: number, wasAborted: boolean) {
  const { status } = outcome;
  const said = () => `${printed(outcome)} for ${printed(facts)}`;
  if (facts === undefined) throw new Error(`an outcome without an input: ${said()}`);
  must(outcome.index === index && outcome.input === facts.input, () => `not in order: ${said()}`);
  const { told, isInDoubt, isInvalid, timesSent } = facts;
  // An abort may come between the answer and the outcome.
  if (wasAborted && status === 'unknown' && timesSent > 0) return;
  const rest = isInDoubt ? 'unknown' : 'error';
  const expected = isInvalid ? 'invalid' : (told ?? rest);
  must(status === expected, () => `expected ${expected}: ${said()}`);
  const number = outcome.tracker?.trackingNumber ?? facts.input.trackingNumber;
  must(number === facts.input.trackingNumber, () => `the tracker of another input: ${said()}`);
  const hasTracker = outcome.tracker !== undefined;
  must(hasTracker === (status === 'created' || status === 'existing'), () => `a wrong tracker: ${said()}`);
}

function checkSummary(summary: Readonly<Record<string, number>>, outcomes: readonly BulkOutcome[]): void {
  const counts: Record<string, number> = { total: outcomes.length };
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  const isSame = Object.entries(summary).every(([name, value]) => value === (counts[name] ?? 0));
  must(isSame, () => `a wrong summary: ${printed({ summary, counts })}`);
}

/** Any answers and losses give each input of `createMany` one outcome, in order, that fits what the service did. */
export const bulkSchedules = scheduleProperty('bulk-schedules', 40, schedule, play, {
  limitMs: LIMIT_MS,
  endsTimers: true,
});

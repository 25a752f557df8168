// Specification: service.md 2.1, 2.4, 4, 8

import { z } from 'zod';
import { callGuarded } from '../common/guarded-call.ts';
import {
  checkOptions,
  countOption,
  functionOption,
  type OptionShape,
  option,
} from '../common/option-checks.ts';
import { errorMap, toValidationIssues } from '../common/validation.ts';
import { BULK_SHAPE, CALL_SHAPE } from '../config/call-options.ts';
import { RequestValidationError } from '../errors.ts';
import { CallFailure } from '../http/api-promise.ts';
import type { CallContext } from '../http/execute.ts';
import type { BulkRequestOptions, RetryOptions } from '../options.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { MAX_BULK_ITEMS } from '../schemas/bulk.ts';
import { isSurelyOutdated, type TrackerInput, trackerInputSchema } from '../schemas/tracker.ts';
import {
  type BulkOutcome,
  BulkRequest,
  type BulkStatus,
  errorItemsOf,
  type InputResult,
} from './bulk-request.ts';
import { concernsEveryRequest } from './polled-tracker.ts';
import { checkIterable, PullStream, SourceReader } from './streams.ts';

const DEFAULT_CONCURRENCY = 3;
/** An import can wait; rows that fail because of a pause have to be fed in again. */
const ABORTED = [{ code: 'aborted', message: 'The run was aborted' }];

/** Any number of creation requests, known now or later. */
export type TrackerInputs = Iterable<TrackerInput> | AsyncIterable<TrackerInput>;

/** Options of `trackers.createMany`; those of a request hold for each chunk. */
export interface CreateManyOptions extends BulkRequestOptions {
  /** Inputs a request, 1 to 100. Default 100. */
  readonly chunkSize?: number | undefined;
  /** Chunks that are under way or wait to be read, 1 or more. Default 3, as many as go in a second. */
  readonly concurrency?: number | undefined;
  /**
   * Retries of each request: `false` for none, or what differs from the client's. A run sits out a pause of up to an hour
   * that the service asks for (`maxRetryAfterMs` 3,600,000), and so do its later chunks; of a longer one the chunk that met
   * it comes out as `error`, and the next asks again after that hour. Set `maxRetryAfterMs` to have them all come out at
   * once. Default: the client's, with that hour where the client has the usual minute.
   */
  readonly retry?: false | RetryOptions | undefined;
  /** Called after every chunk with the counts so far. One that throws never breaks the run. */
  readonly onProgress?: ((summary: BulkSummary) => void) | undefined;
}

/** How many inputs came out how. */
export interface BulkSummary {
  /** Inputs whose outcome is known, read by you or not. */
  readonly total: number;
  /** New trackers. */
  readonly created: number;
  /** Trackers that matched the same payload. */
  readonly existing: number;
  /** Inputs that were rejected, or not sent before the run ended. */
  readonly error: number;
  /** Inputs that broke a rule and were not sent. */
  readonly invalid: number;
  /** Inputs of which it is not known what became of them. */
  readonly unknown: number;
}

const chunkSizeOption = option<number>(
  `a whole number from 1 to ${MAX_BULK_ITEMS}`,
  (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= MAX_BULK_ITEMS,
);

const createManyOptions = z
  .strictObject({
    chunkSize: chunkSizeOption.default(MAX_BULK_ITEMS),
    concurrency: countOption(1).default(DEFAULT_CONCURRENCY),
    onProgress: functionOption<(summary: BulkSummary) => void>().default(() => () => {}),
    ...BULK_SHAPE,
    ...CALL_SHAPE,
  } satisfies OptionShape<CreateManyOptions>)
  .transform(({ chunkSize, concurrency, onProgress, ...request }) => ({
    chunkSize,
    concurrency,
    onProgress,
    request,
  }));

/**
 * Creates any number of trackers, chunk by chunk, and yields one outcome for each input, in the order of the inputs.
 *
 * A chunk is read and sent only while somebody reads, and at most `concurrency` chunks are under way or wait to be read.
 */
export class BulkCreation extends PullStream<BulkOutcome> {
  readonly #context: CallContext;
  readonly #settings: z.output<typeof createManyOptions>;
  readonly #source: SourceReader<TrackerInput>;
  readonly #runs: ChunkRun[] = [];
  readonly #requests = new Set<BulkRequest>();
  #inputsRead = 0;
  #reading: Promise<void> | undefined;
  #read: readonly CheckedInput[] | undefined;
  #isAtEnd = false;
  /** What ended the reading early: the source's own error, or the signal's reason. */
  #readingFailure: { readonly error: unknown } | undefined;
  /** Why nothing more is sent. */
  #stopErrors: readonly ApiErrorItem[] | undefined;
  #summary: BulkSummary = { total: 0, created: 0, existing: 0, error: 0, invalid: 0, unknown: 0 };

  /** @internal */
  constructor(context: CallContext, inputs: TrackerInputs, options: CreateManyOptions) {
    checkIterable('inputs', inputs);
    const settings = checkOptions(createManyOptions, options);
    super(options.signal);
    this.#context = context;
    this.#settings = settings;
    this.#source = new SourceReader(inputs);
  }

  /**
   * Counts the outcomes so far.
   *
   * @returns the counts of all outcomes that are known; complete when the stream has ended
   */
  summary(): BulkSummary {
    return this.#summary;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<BulkOutcome, void, undefined> {
    try {
      for (;;) {
        this.#advance(signal);
        const [first] = this.#runs;
        if (first?.outcomes !== undefined) {
          this.#runs.shift();
          for (const outcome of first.outcomes) {
            yield outcome;
            this.#advance(signal);
          }
        } else if (first === undefined && this.#reading === undefined) {
          break;
        } else {
          await Promise.race([first?.done, this.#reading].filter((promise) => promise !== undefined));
        }
      }
      if (this.#readingFailure !== undefined) throw this.#readingFailure.error;
      signal.throwIfAborted();
    } finally {
      this.#source.close();
    }
  }

  /** Sends the chunk that was read, and reads the next one if there is room for it. */
  #advance(signal: AbortSignal): void {
    if (this.#read !== undefined) {
      this.#runs.push(this.#start(this.#read, signal));
      this.#read = undefined;
    }
    const hasRoom = this.#runs.length < this.#settings.concurrency;
    if (this.#isAtEnd || this.#reading !== undefined || !hasRoom) return;
    this.#reading = this.#readChunk(signal).then((chunk) => {
      this.#reading = undefined;
      if (chunk.length === 0) this.#isAtEnd = true;
      else this.#read = chunk;
    });
  }

  /** The next chunk; empty at the end. What was read before a failure is still a chunk; after it there is none. */
  async #readChunk(signal: AbortSignal): Promise<readonly CheckedInput[]> {
    const { chunkSize } = this.#settings;
    const chunk: CheckedInput[] = [];
    let valid = 0;
    // Invalid inputs take up no place in a request, but they take up memory.
    while (this.#readingFailure === undefined && valid < chunkSize && chunk.length < 2 * chunkSize) {
      try {
        const next = this.#source.next(signal);
        const read = next instanceof Promise ? await next : next;
        if (read === undefined) break;
        const checked = checkInput(this.#inputsRead, read.item);
        this.#inputsRead += 1;
        chunk.push(checked);
        if (checked.item !== undefined) valid += 1;
      } catch (error) {
        this.#readingFailure = { error };
      }
    }
    return chunk;
  }

  #start(chunk: readonly CheckedInput[], signal: AbortSignal): ChunkRun {
    const run: ChunkRun = {
      outcomes: undefined,
      done: this.#carryOut(chunk, signal).then((outcomes) => {
        run.outcomes = outcomes;
        this.#report(outcomes);
      }),
    };
    return run;
  }

  async #carryOut(checkedInputs: readonly CheckedInput[], signal: AbortSignal): Promise<BulkOutcome[]> {
    // A date may have grown too old since it was read, if that took long.
    const chunk = checkedInputs.map((checked) => {
      const { index, input, item } = checked;
      const isOutdated = typeof item?.shippingDate === 'string' && isSurelyOutdated(item.shippingDate);
      return isOutdated ? { ...checkInput(index, item), input } : checked;
    });
    const valid = chunk.flatMap(({ item }) => item ?? []);
    const results = (valid.length === 0 ? [] : await this.#create(valid, signal)).values();
    return chunk.map(({ index, input, errors }) => {
      const result = errors === undefined ? results.next().value : undefined;
      return { index, input, ...(result ?? { status: 'invalid', errors: errors ?? [] }) };
    });
  }

  /** Sends one request; never rejects. */
  async #create(inputs: readonly TrackerInput[], signal: AbortSignal): Promise<InputResult[]> {
    const all = (status: BulkStatus, errors: readonly ApiErrorItem[]) =>
      inputs.map(() => ({ status, errors }));
    if (this.#stopErrors !== undefined) return all('error', this.#stopErrors);
    const request = new BulkRequest(signal);
    this.#requests.add(request);
    try {
      return await request.send(this.#context, inputs, this.#settings.request);
    } catch (failure) {
      if (this.#stopErrors !== undefined && !request.wasSent) return all('error', this.#stopErrors);
      const { error, mayHaveBeenCarriedOut } =
        failure instanceof CallFailure ? failure : new CallFailure(failure, false);
      const status = mayHaveBeenCarriedOut ? 'unknown' : 'error';
      if (signal.aborted) return all(status, ABORTED);
      const errors = errorItemsOf(error);
      if (concernsEveryRequest(error)) this.#stopRun(errors);
      return all(status, errors);
    } finally {
      this.#requests.delete(request);
    }
  }

  /** Every later request would fail alike: those that wait for their turn are not sent any more. */
  #stopRun(errors: readonly ApiErrorItem[]): void {
    this.#stopErrors ??= errors;
    for (const request of this.#requests) {
      if (!request.wasSent) request.cancel();
    }
  }

  #report(outcomes: readonly BulkOutcome[]): void {
    const summary = { ...this.#summary, total: this.#summary.total + outcomes.length };
    for (const { status } of outcomes) summary[status] += 1;
    this.#summary = summary;
    const onFailure = () => this.#context.config.logger.warn('`onProgress` failed; the run goes on');
    callGuarded(() => this.#settings.onProgress(summary), onFailure);
  }
}

interface ChunkRun {
  readonly done: Promise<void>;
  /** Undefined until it is done. */
  outcomes: BulkOutcome[] | undefined;
}

/** One input: what to send of it, or why it is invalid. */
type CheckedInput = { readonly index: number; readonly input: TrackerInput } & (
  | { readonly item: TrackerInput; readonly errors?: undefined }
  | { readonly item?: undefined; readonly errors: readonly ApiErrorItem[] }
);

/** Checks one input as the service would (service.md 2.1), so that it can't spoil its chunk. */
function checkInput(index: number, input: TrackerInput): CheckedInput {
  try {
    const result = trackerInputSchema.safeParse(input, { error: errorMap('input') });
    if (!result.success) {
      const errors = toValidationIssues(result.error).map((issue) => {
        const { code } = new RequestValidationError([issue]);
        return { code, message: issue.message };
      });
      return { index, input, errors };
    }
    if (typeof JSON.stringify(result.data) === 'string') return { index, input, item: result.data };
  } catch {
    // An input may hold itself, or run code of its own, as a row of a database does that loads its fields when read.
  }
  const message = 'Expected `input` to be a JSON value, got one that can not be read or written as JSON';
  return { index, input, errors: [{ code: 'validation_error', message }] };
}

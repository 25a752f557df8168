import * as z from 'zod';
import { linkedController } from '../common/abort.ts';
import {
  callGuarded,
  checkOptions,
  countOption,
  functionOption,
  type OptionShape,
  option,
} from '../common/option-checks.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import {
  BULK_SHAPE,
  CALL_SHAPE,
  type CallOptions,
  completeRetry,
  PATIENT_RETRY,
  resolveCallOptions,
} from '../config/call-options.ts';
import { RequestValidationError } from '../errors.ts';
import { CallFailure } from '../http/api-promise.ts';
import { type CallContext, execute } from '../http/execute.ts';
import { checkInput, prepareRequest, toJson } from '../http/prepare.ts';
import { mayHaveBeenCarriedOut } from '../http/retry.ts';
import type { BulkRequestOptions } from '../options.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { MAX_BULK_ITEMS } from '../schemas/bulk.ts';
import { type TrackerInput, trackerInputSchema } from '../schemas/tracker.ts';
import {
  type BulkOutcome,
  type BulkStatus,
  findRequestError,
  type Identity,
  type InputResult,
  isAccountError,
  readIdentity,
  readResults,
  toErrorItems,
} from './outcomes.ts';

const DEFAULT_CONCURRENCY = 3;
const ABORTED = [{ code: 'aborted', message: 'The run was aborted' }];

/** The creation requests, from a list or an asynchronous source. */
export type TrackerInputs = Iterable<TrackerInput> | AsyncIterable<TrackerInput>;

/** Options of `trackers.createMany`; request options apply to each chunk. */
export interface CreateManyOptions extends BulkRequestOptions {
  /** Number of inputs in one request, 1 to 100 (docs/service.md 3.9). Default 100. */
  readonly chunkSize?: number | undefined;
  /** Maximum number of chunks in flight or not read yet. Default 3, as many as one second allows (docs/service.md 6.1). */
  readonly concurrency?: number | undefined;
  /** Called after every chunk with the counts so far; if it throws, a warning is logged and the run goes on. Default: none. */
  readonly onProgress?: ((summary: BulkSummary) => void) | undefined;
}

/** The number of inputs with each outcome; `total` counts all known outcomes, also those that you have not read yet. */
export type BulkSummary = Readonly<Record<BulkStatus | 'total', number>>;

const createManyOptions = z.strictObject({
  chunkSize: option<number>(
    `a whole number from 1 to ${MAX_BULK_ITEMS}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= MAX_BULK_ITEMS,
  ).default(MAX_BULK_ITEMS),
  concurrency: countOption(1).default(DEFAULT_CONCURRENCY),
  onProgress: functionOption<(summary: BulkSummary) => void>().default(() => () => {}),
  ...BULK_SHAPE,
  ...CALL_SHAPE,
} satisfies OptionShape<CreateManyOptions>);

interface CheckedInput {
  readonly index: number;
  readonly input: TrackerInput;
  /** The text to send, made when the input is read, so that later changes to it are not sent; undefined for an invalid input. */
  readonly item?: { readonly json: string; readonly identity: Identity };
  readonly errors: readonly ApiErrorItem[];
}

/** The stream of `trackers.createMany`: the outcome of each input, in the order of the inputs. */
export class BulkCreation extends PullStream<BulkOutcome> {
  readonly #context: CallContext;
  readonly #inputs: TrackerInputs;
  readonly #settings: z.output<typeof createManyOptions>;
  readonly #callOptions: CallOptions;
  /** Chunks that are being read, in flight, or done but not yielded; an empty chunk marks the end of the inputs. */
  readonly #chunks: Promise<BulkOutcome[]>[] = [];
  #isReading = false;
  #inputsRead = 0;
  #readingFailure: { readonly error: unknown } | undefined;
  readonly #unsent = new Set<AbortController>();
  #stopErrors: readonly ApiErrorItem[] | undefined;
  #summary: BulkSummary = { total: 0, created: 0, existing: 0, error: 0, invalid: 0, unknown: 0 };

  /** @internal */
  constructor(context: CallContext, inputs: TrackerInputs, options: CreateManyOptions) {
    checkIterable('inputs', inputs);
    const settings = checkOptions(createManyOptions, options);
    super(options.signal);
    this.#context = context;
    this.#inputs = inputs;
    this.#settings = settings;
    const { chunkSize, concurrency, onProgress, ...request } = settings;
    const retry = completeRetry(request.retry, context.config.retry, PATIENT_RETRY);
    this.#callOptions = resolveCallOptions(context.config, 'trackers.createBulk', { ...request, retry });
  }

  /**
   * Counts the outcomes so far.
   *
   * @returns the counts of all known outcomes; complete when the stream has ended
   */
  summary(): BulkSummary {
    return this.#summary;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<BulkOutcome, void, undefined> {
    const source = new SourceReader(this.#inputs);
    try {
      for (;;) {
        this.#startNextChunk(source, signal);
        const outcomes = await this.#chunks[0];
        if (outcomes === undefined || outcomes.length === 0) break;
        yield* outcomes;
        this.#chunks.shift();
      }
      if (this.#readingFailure !== undefined) throw this.#readingFailure.error;
    } finally {
      source.close();
    }
  }

  #startNextChunk(source: SourceReader<TrackerInput>, signal: AbortSignal): void {
    if (this.#isReading || this.#chunks.length >= this.#settings.concurrency) return;
    this.#isReading = true;
    const outcomes = this.#readChunk(source, signal).then(async (chunk) => {
      this.#isReading = false;
      if (chunk.length === 0) return [];
      this.#startNextChunk(source, signal);
      return await this.#createChunk(chunk, signal);
    });
    this.#chunks.push(outcomes);
  }

  /** Reads up to `chunkSize` inputs, and none at the end. If the source fails, the inputs read before form the last chunk. */
  async #readChunk(source: SourceReader<TrackerInput>, signal: AbortSignal): Promise<CheckedInput[]> {
    const chunk: CheckedInput[] = [];
    if (this.#readingFailure !== undefined) return chunk;
    try {
      while (chunk.length < this.#settings.chunkSize) {
        const { done, value } = await source.next(signal);
        if (done) break;
        chunk.push(checkItem(this.#inputsRead, value));
        this.#inputsRead += 1;
      }
    } catch (error) {
      this.#readingFailure = { error };
    }
    return chunk;
  }

  async #createChunk(chunk: readonly CheckedInput[], signal: AbortSignal): Promise<BulkOutcome[]> {
    const items = chunk.flatMap(({ item }) => item ?? []);
    const results = (items.length === 0 ? [] : await this.#create(items, signal)).values();
    const outcomes = chunk.map(({ index, input, item, errors }): BulkOutcome => {
      const result = item === undefined ? undefined : results.next().value;
      return { index, input, ...(result ?? { status: 'invalid', errors }) };
    });
    this.#report(outcomes);
    return outcomes;
  }

  /** Never rejects: a failure becomes the result of every input. */
  async #create(
    items: readonly NonNullable<CheckedInput['item']>[],
    signal: AbortSignal,
  ): Promise<InputResult[]> {
    const all = (status: BulkStatus, errors: readonly ApiErrorItem[]) =>
      items.map(() => ({ status, errors }));
    if (this.#stopErrors !== undefined) return all('error', this.#stopErrors);
    const { config } = this.#context;
    const { controller, unsubscribe } = linkedController(signal);
    this.#unsent.add(controller);
    try {
      const request = prepareRequest(config, 'trackers.createBulk', {
        json: `[${items.map(({ json }) => json).join()}]`,
      });
      const options = { ...this.#callOptions, signal: controller.signal };
      const outcome = await execute(this.#context, request, options, () => this.#unsent.delete(controller));
      const error = findRequestError(outcome);
      if (error === undefined) {
        return readResults(
          items.map(({ identity }) => identity),
          outcome.data,
        );
      }
      throw new CallFailure(error, outcome.mayHaveBeenCarriedOutBefore || mayHaveBeenCarriedOut(error));
    } catch (failure) {
      if (this.#stopErrors !== undefined && this.#unsent.has(controller)) {
        return all('error', this.#stopErrors);
      }
      const isCallFailure = failure instanceof CallFailure;
      const status = isCallFailure && failure.mayHaveBeenCarriedOut ? 'unknown' : 'error';
      if (signal.aborted) return all(status, ABORTED);
      const error = isCallFailure ? failure.error : failure;
      const errors = toErrorItems(error);
      if (isAccountError(error)) this.#stop(errors);
      return all(status, errors);
    } finally {
      unsubscribe();
      this.#unsent.delete(controller);
    }
  }

  #stop(errors: readonly ApiErrorItem[]): void {
    this.#stopErrors ??= errors;
    for (const controller of this.#unsent) controller.abort(new Error('The run was stopped'));
  }

  #report(outcomes: readonly BulkOutcome[]): void {
    const summary = { ...this.#summary, total: this.#summary.total + outcomes.length };
    for (const { status } of outcomes) summary[status] += 1;
    this.#summary = summary;
    const onFailure = () => this.#context.config.logger.warn('`onProgress` failed; the run goes on');
    callGuarded(() => this.#settings.onProgress(summary), onFailure);
  }
}

/** Checks one input as `trackers.create` does, so that one invalid input does not fail its whole chunk. */
function checkItem(index: number, input: TrackerInput): CheckedInput {
  try {
    const checked = checkInput(trackerInputSchema, input, 'input');
    return {
      index,
      input,
      item: { json: toJson(checked, 'input'), identity: readIdentity(checked) },
      errors: [],
    };
  } catch (error) {
    if (!(error instanceof RequestValidationError)) {
      const message = 'Expected `input` to be a JSON value, got one that cannot be read';
      return { index, input, errors: [{ code: 'validation_error', message }] };
    }
    const errors = error.issues.map((issue) => {
      const { code } = new RequestValidationError([issue]);
      return { code, message: issue.message };
    });
    return { index, input, errors };
  }
}

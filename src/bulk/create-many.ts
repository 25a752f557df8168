import * as z from 'zod';
import { linkedController } from '../common/abort.ts';
import { checkOptions } from '../common/check-options.ts';
import { countOption, functionOption, type OptionShape, rule } from '../common/option-schemas.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import {
  BACKGROUND_RETRY,
  BULK_SHAPE,
  CALL_SHAPE,
  type CallOptions,
  completeRetry,
  type RetryPolicy,
  resolveCallOptions,
} from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { isAccountError, RequestValidationError } from '../errors.ts';
import { CallFailure, execute } from '../http/execute.ts';
import { checkInput, prepareRequest, toJson } from '../http/prepare.ts';
import { callOrWarn } from '../observability/logger.ts';
import type { BulkRequestOptions } from '../options.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { MAX_BULK_ITEMS } from '../schemas/bulk.ts';
import { type TrackerInput, trackerInputSchema } from '../schemas/tracker.ts';
import {
  type BulkOutcome,
  type BulkStatus,
  type Identity,
  type InputResult,
  isRefusal,
  readIdentity,
  readResults,
  toErrorItems,
} from './outcomes.ts';

/** As many chunks as one second allows (docs/service.md 6.1). */
const CHUNKS_PER_SECOND = 3;
/** Enough chunks in flight to use the whole rate limit of a service that responds after 3 seconds. */
const MAX_CHUNKS_IN_FLIGHT = 10;
/** More chunks would only fill the memory. */
const MAX_CONCURRENCY = 1_000;
/** A bulk run retries more often than other calls, because nothing repeats its requests later. */
export const BULK_RETRY: RetryPolicy = { ...BACKGROUND_RETRY, retries: 20 };
const UNSENT = [{ code: 'aborted', message: 'Aborted before the service accepted this input' }];
const ABORTED = [
  {
    code: 'aborted',
    message:
      'Aborted while this input was sent, so its tracker may or may not exist; send it again, which is safe',
  },
];

/** The creation requests, from a list or an asynchronous source. */
export type TrackerInputs = Iterable<TrackerInput> | AsyncIterable<TrackerInput>;

/** Options of `trackers.createMany`; request options apply to each chunk. */
export interface CreateManyOptions extends BulkRequestOptions {
  /** Number of inputs in one request, 1 to 100 (docs/service.md 3.9). Default 100. */
  readonly chunkSize?: number | undefined;
  /**
   * Maximum number of requests under way. Requests whose outcomes your loop has not read count, too. Default: 10, or 3 without a
   * limiter or with a `maxQueue`. Without this option, a client with a limiter and no `maxQueue` reads the next chunk only when the
   * previous chunk was sent or has ended.
   */
  readonly concurrency?: number | undefined;
  /** Called with the counts after each request. If it throws, a warning is logged and the run goes on. Default: none. */
  readonly onProgress?: ((summary: BulkSummary) => void) | undefined;
}

/** The number of inputs with each outcome; `total` counts all known outcomes, also those that you have not read yet. */
export type BulkSummary = Readonly<Record<BulkStatus | 'total', number>>;

const createManyOptions = z.strictObject({
  chunkSize: z
    .int(rule(`a whole number from 1 to ${MAX_BULK_ITEMS}`))
    .min(1)
    .max(MAX_BULK_ITEMS)
    .default(MAX_BULK_ITEMS),
  concurrency: countOption(1).optional(),
  onProgress: functionOption<(summary: BulkSummary) => void>().default(() => () => {}),
  ...BULK_SHAPE,
  ...CALL_SHAPE,
} satisfies OptionShape<CreateManyOptions>);

interface CheckedInput {
  readonly index: number;
  readonly input: TrackerInput;
  /** The text to send, made when the input is read, so that later changes to the input are not sent. An invalid input has none. */
  readonly item?: { readonly json: string; readonly identity: Identity };
  readonly errors: readonly ApiErrorItem[];
}

interface SentChunk {
  readonly outcomes: Promise<readonly BulkOutcome[]>;
}

/** The stream of `trackers.createMany`: the outcome of each input, in the order of the inputs. */
export class BulkCreation extends PullStream<BulkOutcome> {
  readonly #config: Config;
  readonly #inputs: TrackerInputs;
  readonly #settings: z.output<typeof createManyOptions>;
  readonly #callOptions: CallOptions;
  readonly #concurrency: number;
  /** True if the next chunk is read only when the one before was sent or has ended. */
  readonly #waitsUntilSent: boolean;
  readonly #unsent = new Set<AbortController>();
  #stopErrors: readonly ApiErrorItem[] | undefined;
  #summary: BulkSummary = { total: 0, created: 0, existing: 0, error: 0, invalid: 0, unknown: 0 };

  /** @internal */
  constructor(config: Config, inputs: TrackerInputs, options: CreateManyOptions) {
    checkIterable('inputs', inputs);
    const settings = checkOptions(createManyOptions, options, undefined, config);
    super(options.signal);
    this.#config = config;
    this.#inputs = inputs;
    this.#settings = settings;
    // A queue with `maxQueue` could refuse chunks that retry, so send fewer at once.
    const isWide = config.limiter?.maxQueue === Number.POSITIVE_INFINITY;
    const defaultConcurrency = isWide ? MAX_CHUNKS_IN_FLIGHT : CHUNKS_PER_SECOND;
    this.#concurrency = Math.min(settings.concurrency ?? defaultConcurrency, MAX_CONCURRENCY);
    this.#waitsUntilSent = settings.concurrency === undefined && isWide;
    const { chunkSize, concurrency, onProgress, ...request } = settings;
    const retry = completeRetry(request.retry, config.retry, BULK_RETRY);
    this.#callOptions = resolveCallOptions(config, 'trackers.createBulk', { ...request, retry });
  }

  /**
   * Counts the outcomes so far.
   *
   * @returns the counts of all known outcomes; complete when the stream has ended
   */
  summary(): BulkSummary {
    return this.#summary;
  }

  protected override async *produce(): AsyncGenerator<BulkOutcome, void, undefined> {
    const source = new SourceReader(this.#inputs);
    const chunks = this.#sendChunks(source);
    const ahead: Promise<IteratorResult<SentChunk, void>>[] = [];
    try {
      for (;;) {
        // Call `next` several times at once: the generator works through these calls, and so sends later chunks while the caller
        // reads the outcomes of this chunk.
        while (ahead.length < this.#concurrency) ahead.push(withoutWarning(chunks.next()));
        const next = await ahead[0];
        if (next === undefined || next.done) break;
        yield* await next.value.outcomes;
        ahead.shift();
      }
      this.endSignal.throwIfAborted();
    } finally {
      source.close();
    }
  }

  /** Reads chunk after chunk and sends each. If the source throws, sends the unfinished chunk, then rethrows. */
  async *#sendChunks(source: SourceReader<TrackerInput>): AsyncGenerator<SentChunk, void, undefined> {
    let inputsRead = 0;
    let end: { readonly failure?: unknown } | undefined;
    while (end === undefined) {
      const inputs: CheckedInput[] = [];
      try {
        while (inputs.length < this.#settings.chunkSize && end === undefined) {
          const { done, value } = await source.next(this.endSignal);
          if (done) end = {};
          else inputs.push(checkItem(this.#config, inputsRead + inputs.length, value));
        }
      } catch (failure) {
        end = { failure };
      }
      inputsRead += inputs.length;
      if (inputs.length > 0) {
        let noteSent = () => {};
        const sent = new Promise<void>((resolve) => {
          noteSent = resolve;
        });
        const outcomes = this.#createChunk(inputs, noteSent).finally(noteSent);
        // An object, because `yield` of a promise would wait for it.
        yield { outcomes };
        if (this.#waitsUntilSent) await sent;
      }
    }
    if ('failure' in end) throw end.failure;
  }

  /** Never rejects: a failure becomes the outcome of every valid input. */
  async #createChunk(inputs: readonly CheckedInput[], onSend: () => void): Promise<readonly BulkOutcome[]> {
    const items = inputs.flatMap(({ item }) => item ?? []);
    const results = (items.length === 0 ? [] : await this.#create(items, onSend)).values();
    const outcomes = inputs.map(({ index, input, item, errors }): BulkOutcome => {
      const result = item === undefined ? undefined : results.next().value;
      return { index, input, ...(result ?? { status: 'invalid', errors }) };
    });
    this.#count(outcomes);
    return outcomes;
  }

  async #create(
    items: readonly NonNullable<CheckedInput['item']>[],
    onSend: () => void,
  ): Promise<readonly InputResult[]> {
    const all = (status: BulkStatus, errors: readonly ApiErrorItem[]) =>
      items.map(() => ({ status, errors }));
    if (this.#stopErrors !== undefined) return all('error', this.#stopErrors);
    const { controller, unsubscribe } = linkedController(this.endSignal);
    this.#unsent.add(controller);
    const noteSent = () => {
      this.#unsent.delete(controller);
      onSend();
    };
    try {
      const json = `[${items.map((item) => item.json).join()}]`;
      const prepared = prepareRequest(this.#config, 'trackers.createBulk', { json });
      const request = { ...prepared, response: { ...prepared.response, isRefusal } };
      const options = { ...this.#callOptions, signal: controller.signal };
      const { data } = await execute(this.#config, request, options, { onSend: noteSent });
      return readResults(
        items.map(({ identity }) => identity),
        data,
      );
    } catch (failure) {
      if (this.#stopErrors !== undefined && this.#unsent.has(controller))
        return all('error', this.#stopErrors);
      const isCallFailure = failure instanceof CallFailure;
      const status = isCallFailure && failure.callMayBeDone ? 'unknown' : 'error';
      if (this.endSignal.aborted) return all(status, status === 'unknown' ? ABORTED : UNSENT);
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

  #count(outcomes: readonly BulkOutcome[]): void {
    const summary = { ...this.#summary, total: this.#summary.total + outcomes.length };
    for (const { status } of outcomes) summary[status] += 1;
    this.#summary = summary;
    callOrWarn('onProgress', () => this.#settings.onProgress(summary), this.#config.logger);
  }
}

/** Avoids an unhandled rejection if nobody awaits the promise yet, or ever. */
function withoutWarning<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Checks one input as `trackers.create` does, so that one invalid input does not fail its whole chunk. */
function checkItem(config: Config, index: number, input: TrackerInput): CheckedInput {
  try {
    const checked = checkInput(config, trackerInputSchema, input, 'input');
    return {
      index,
      input,
      item: { json: toJson(checked, 'input'), identity: readIdentity(checked) },
      errors: [],
    };
  } catch (error) {
    if (!(error instanceof RequestValidationError)) {
      const message =
        '`input` could not be read, because one of its getters threw an error; pass a plain object';
      return { index, input, errors: [{ code: 'validation_error', message }] };
    }
    const errors = error.issues.map((issue) => {
      const { code } = new RequestValidationError([issue]);
      return { code, message: issue.message };
    });
    return { index, input, errors };
  }
}

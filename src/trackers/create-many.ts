import { linkedController } from '../common/timing.ts';
import { DEFAULT_RETRY } from '../config/call-options.ts';
import { Caller } from '../http/caller.ts';
import { callGuarded } from '../logging.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import type { BulkItem } from '../schemas/bulk.ts';
import type { TrackerInput } from '../schemas/tracker.ts';
import { type Chunk, type ChunkEntry, ChunkReader } from './bulk-chunks.ts';
import { errorItemsOf, refusalOf } from './bulk-failure.ts';
import { matchItems } from './bulk-matching.ts';
import { addOutcomes, type BulkOutcome, type BulkSummary, EMPTY_SUMMARY } from './bulk-outcome.ts';
import {
  type CreateManyOptions,
  type CreateManySettings,
  DEFAULT_MAX_RETRY_AFTER_MS,
  resolveCreateManyOptions,
} from './create-many-options.ts';
import { isHopeless } from './hopeless-failure.ts';
import { PullStream } from './pull-stream.ts';
import { SendingWatch } from './sending-watch.ts';
import { checkIterable } from './source-reader.ts';

/** Any number of creation requests, known now or later. */
export type TrackerInputs = Iterable<TrackerInput> | AsyncIterable<TrackerInput>;

/** What is said of inputs that share a fate. */
type Verdict = Pick<BulkOutcome, 'status' | 'tracker' | 'errors'>;

/** A chunk on its way. */
interface ChunkRun {
  readonly done: Promise<void>;
  /** Undefined until it is done. */
  outcomes: BulkOutcome[] | undefined;
}

function failed(status: 'error' | 'unknown', errors: readonly ApiErrorItem[]): Verdict {
  return { status, errors };
}

const ITEM_STATUSES = ['created', 'existing', 'error'] as const;
const ABORTED = [{ code: 'aborted', message: 'The run was aborted' }];
const NOT_IN_RESPONSE = [{ code: 'not_in_response', message: 'The answer does not tell about this input' }];

function verdictOf(item: BulkItem | undefined): Verdict {
  if (item === undefined) return failed('unknown', NOT_IN_RESPONSE);
  const { itemStatus, tracker, errors } = item;
  return {
    status: ITEM_STATUSES.find((status) => status === itemStatus) ?? 'unknown',
    ...(tracker ? { tracker } : {}),
    ...(errors && errors.length > 0 ? { errors } : {}),
  };
}

/**
 * Creates any number of trackers, chunk by chunk, and yields one outcome for each input, in the order of the inputs.
 *
 * A chunk is read and sent only while somebody reads, and at most `concurrency` chunks are under way or wait to be read.
 */
export class BulkCreation extends PullStream<BulkOutcome> {
  readonly #caller: Caller;
  readonly #settings: CreateManySettings;
  readonly #reader: ChunkReader;
  readonly #runs: ChunkRun[] = [];
  /** Ends the chunks that have not been sent. */
  readonly #unsent = new Map<SendingWatch, AbortController>();
  #reading: Promise<void> | undefined;
  #read: Chunk | undefined;
  #isAtEnd = false;
  #stop: readonly ApiErrorItem[] | undefined;
  #summary = EMPTY_SUMMARY;

  /** @internal */
  constructor(caller: Caller, inputs: TrackerInputs, settings: CreateManySettings) {
    super(settings.signal);
    this.#caller = caller;
    this.#settings = settings;
    this.#reader = new ChunkReader(inputs, settings.chunkSize);
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
      if (this.#reader.failure !== undefined) throw this.#reader.failure.error;
      signal.throwIfAborted();
    } finally {
      this.#reader.close();
    }
  }

  /** Sends the chunk that was read, and reads the next one if there is room for it. */
  #advance(signal: AbortSignal): void {
    if (this.#read !== undefined) {
      this.#runs.push(this.#start(this.#read, signal));
      this.#read = undefined;
    }
    if (this.#isAtEnd || this.#reading !== undefined || this.#runs.length >= this.#settings.concurrency)
      return;
    this.#reading = this.#reader.next(signal).then((chunk) => {
      this.#reading = undefined;
      if (chunk.length === 0) this.#isAtEnd = true;
      else this.#read = chunk;
    });
  }

  #start(chunk: Chunk, signal: AbortSignal): ChunkRun {
    const run: ChunkRun = {
      outcomes: undefined,
      done: this.#carryOut(chunk, signal).then((outcomes) => {
        run.outcomes = outcomes;
        this.#summary = addOutcomes(this.#summary, outcomes);
        this.#report();
      }),
    };
    return run;
  }

  async #carryOut(chunk: Chunk, signal: AbortSignal): Promise<BulkOutcome[]> {
    const items = chunk.flatMap(({ item }) => item ?? []);
    const verdicts = items.length === 0 ? [] : await this.#create(items, signal);
    const inOrder = verdicts.values();
    return chunk.map(({ index, input, item, errors }: ChunkEntry) => {
      if (item === undefined) return { index, input, status: 'invalid', errors };
      return { index, input, ...(inOrder.next().value ?? failed('unknown', NOT_IN_RESPONSE)) };
    });
  }

  /** Sends one request; never rejects. */
  async #create(items: readonly TrackerInput[], signal: AbortSignal): Promise<Verdict[]> {
    const all = (verdict: Verdict) => items.map(() => verdict);
    if (this.#stop !== undefined) return all(failed('error', this.#stop));
    const watch = new SendingWatch();
    const { controller, takeBack } = linkedController(signal);
    this.#unsent.set(watch, controller);
    try {
      const options = { ...this.#settings.request, signal: controller.signal };
      const call = watch.watch(this.#caller).call('trackers.createBulk', { body: items }, options);
      const answer = await call.withResponse();
      const refusal = refusalOf(answer);
      if (refusal !== undefined) throw refusal;
      return matchItems(items, answer.data.data ?? []).map(verdictOf);
    } catch (error) {
      if (this.#stop !== undefined && !watch.wasSent) return all(failed('error', this.#stop));
      const status = watch.mayBeDone(error) ? 'unknown' : 'error';
      if (signal.aborted) return all(failed(status, ABORTED));
      const errors = errorItemsOf(error);
      if (isHopeless(error)) this.#stopRun(errors);
      return all(failed(status, errors));
    } finally {
      takeBack();
      this.#unsent.delete(watch);
    }
  }

  /** Every later request would fail alike: those that wait for their turn are not sent any more. */
  #stopRun(errors: readonly ApiErrorItem[]): void {
    this.#stop ??= errors;
    for (const [watch, controller] of this.#unsent) {
      if (!watch.wasSent) controller.abort(new Error('The run was stopped'));
    }
  }

  #report(): void {
    const { onProgress } = this.#settings;
    const onFailure = () => this.#caller.config.logger.warn('`onProgress` failed; the run goes on');
    callGuarded(() => onProgress(this.#summary), onFailure);
  }
}

/** What nobody waits for can wait itself, unless the client was told otherwise. */
function patientCaller({ config }: Caller): Caller {
  const { retry } = config;
  const isDefault = retry.maxRetryAfterMs === DEFAULT_RETRY.maxRetryAfterMs;
  const maxRetryAfterMs = isDefault ? DEFAULT_MAX_RETRY_AFTER_MS : retry.maxRetryAfterMs;
  return new Caller({ ...config, retry: { ...retry, maxRetryAfterMs } });
}

/** What `trackers.createMany` does; see there. */
export function createMany(caller: Caller, inputs: TrackerInputs, options: CreateManyOptions): BulkCreation {
  checkIterable('inputs', inputs);
  const patient = patientCaller(caller);
  return new BulkCreation(patient, inputs, resolveCreateManyOptions(patient.config, options));
}

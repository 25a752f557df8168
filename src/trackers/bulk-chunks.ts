import { errorMap, toValidationIssues, type ValidationIssue } from '../common/validation.ts';
import { RequestValidationError } from '../errors.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { type TrackerInput, trackerInputSchema } from '../schemas/tracker.ts';
import { SourceReader } from './source-reader.ts';

/** One input, checked. */
export interface ChunkEntry {
  readonly index: number;
  readonly input: TrackerInput;
  /** What to send; undefined when the input is invalid. */
  readonly item: TrackerInput | undefined;
  /** Why it is invalid. */
  readonly errors: readonly ApiErrorItem[];
}

/** Consecutive inputs that share a request. */
export type Chunk = readonly ChunkEntry[];

function toErrorItem(issue: ValidationIssue): ApiErrorItem {
  const { code } = new RequestValidationError([issue]);
  return { code, message: issue.message };
}

function isJson(value: unknown): boolean {
  try {
    return typeof JSON.stringify(value) === 'string';
  } catch {
    return false;
  }
}

function invalidEntry(index: number, input: TrackerInput, got: string): ChunkEntry {
  const message = `Expected \`input\` to be a JSON value, got one that ${got}`;
  return { index, input, item: undefined, errors: [{ code: 'validation_error', message }] };
}

/** Checks an input that may run code of its own, as a row of a database does that loads its fields when they are read. */
function checkSafely(index: number, input: TrackerInput): ChunkEntry {
  try {
    return check(index, input);
  } catch {
    return invalidEntry(index, input, 'fails when it is read');
  }
}

/** Checks one input as the service would (service.md 2.1), so that it can't spoil its chunk. */
function check(index: number, input: TrackerInput): ChunkEntry {
  const result = trackerInputSchema.safeParse(input, { error: errorMap('input') });
  if (!result.success) {
    const errors = toValidationIssues(result.error).map(toErrorItem);
    return { index, input, item: undefined, errors };
  }
  if (isJson(result.data)) return { index, input, item: result.data, errors: [] };
  return invalidEntry(index, input, 'JSON can not hold');
}

/** Reads inputs into chunks of at most `chunkSize` valid ones, and no further. */
export class ChunkReader {
  readonly #source: SourceReader<TrackerInput>;
  readonly #chunkSize: number;
  #index = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(inputs: Iterable<TrackerInput> | AsyncIterable<TrackerInput>, chunkSize: number) {
    this.#source = new SourceReader(inputs);
    this.#chunkSize = chunkSize;
  }

  /** What ended the reading early: the source's own error, or the signal's reason. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /**
   * The next chunk; empty at the end. What was read before a failure is still a chunk; after it there is none.
   */
  async next(signal: AbortSignal): Promise<Chunk> {
    const chunk: ChunkEntry[] = [];
    let valid = 0;
    // Invalid inputs take up no place in a request, but they take up memory.
    while (this.#failure === undefined && valid < this.#chunkSize && chunk.length < 2 * this.#chunkSize) {
      try {
        const next = this.#source.next(signal);
        const read = next instanceof Promise ? await next : next;
        if (read === undefined) break;
        const entry = checkSafely(this.#index, read.item);
        this.#index += 1;
        chunk.push(entry);
        if (entry.item !== undefined) valid += 1;
      } catch (error) {
        this.#failure = { error };
      }
    }
    return chunk;
  }

  close(): void {
    this.#source.close();
  }
}

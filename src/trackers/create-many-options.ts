import { checkBoolean, checkCount, checkKnownOptions, refuseOption } from '../common/option-checks.ts';
import { resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { RetryOptions } from '../options.ts';
import { MAX_BULK_ITEMS } from '../schemas/bulk.ts';
import type { BulkSummary } from './bulk-outcome.ts';
import type { BulkRequestOptions } from './request-options.ts';

const DEFAULT_CONCURRENCY = 3;
/** An import can wait; rows that fail because of a pause have to be fed in again. */
export const DEFAULT_MAX_RETRY_AFTER_MS = 3_600_000;

/** Options of `trackers.createMany`; those of a request hold for each chunk. */
export interface CreateManyOptions extends BulkRequestOptions {
  /** Inputs a request, 1 to 100. Default 100. */
  readonly chunkSize?: number | undefined;
  /** Chunks that are under way or wait to be read, 1 or more. Default 3, as many as go in a second (service.md 8). */
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

/** The options of `trackers.createMany`, checked and completed. */
export interface CreateManySettings {
  readonly chunkSize: number;
  readonly concurrency: number;
  readonly onProgress: (summary: BulkSummary) => unknown;
  readonly signal: AbortSignal | undefined;
  readonly request: BulkRequestOptions;
}

// Typed against the options, so an option without an entry here does not compile.
const CREATE_MANY_OPTIONS = {
  chunkSize: true,
  concurrency: true,
  onProgress: true,
  retryAmbiguous: true,
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
  priority: true,
} satisfies Record<keyof CreateManyOptions, true>;

function checkChunkSize(value: unknown): number {
  const isInRange = Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= MAX_BULK_ITEMS;
  return isInRange
    ? Number(value)
    : refuseOption('chunkSize', `a whole number from 1 to ${MAX_BULK_ITEMS}`, value);
}

/**
 * Checks and completes the options of `trackers.createMany`.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolveCreateManyOptions(config: Config, options: CreateManyOptions): CreateManySettings {
  checkKnownOptions('options', options, Object.keys(CREATE_MANY_OPTIONS));
  const {
    chunkSize,
    concurrency,
    onProgress = () => {},
    signal,
    retryAmbiguous = false,
    ...request
  } = options;
  resolveCallOptions(config, { ...request, signal });
  if (typeof onProgress !== 'function') refuseOption('onProgress', 'a function', onProgress);
  return {
    chunkSize: checkChunkSize(chunkSize ?? MAX_BULK_ITEMS),
    concurrency: checkCount('concurrency', concurrency ?? DEFAULT_CONCURRENCY, 1),
    onProgress,
    signal,
    request: { ...request, retryAmbiguous: checkBoolean('retryAmbiguous', retryAmbiguous) },
  };
}

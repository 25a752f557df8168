import { type Config, resolveCallOptions } from '../config.ts';
import { checkCount, checkKnownOptions, refuseOption } from '../option-checks.ts';
import { MAX_BULK_ITEMS } from '../schemas/bulk.ts';
import type { BulkSummary } from './bulk-outcome.ts';
import type { BulkRequestOptions } from './request-options.ts';

const DEFAULT_CONCURRENCY = 3;

/** Options of `trackers.createMany`; those of a request hold for each chunk. */
export interface CreateManyOptions extends BulkRequestOptions {
  /** Inputs a request, 1 to 100. Default 100. */
  readonly chunkSize?: number | undefined;
  /** Chunks that are under way or wait to be read, 1 or more. Default 3, as many as go in a second (service.md 8). */
  readonly concurrency?: number | undefined;
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
  if (typeof retryAmbiguous !== 'boolean') refuseOption('retryAmbiguous', 'true or false', retryAmbiguous);
  return {
    chunkSize: checkChunkSize(chunkSize ?? MAX_BULK_ITEMS),
    concurrency: checkCount('concurrency', concurrency ?? DEFAULT_CONCURRENCY, 1),
    onProgress,
    signal,
    request: { ...request, retryAmbiguous },
  };
}

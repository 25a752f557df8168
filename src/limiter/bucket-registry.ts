import type { BucketId } from './limiter.ts';

/** With this many buckets the idle ones are looked for and forgotten, so a key that changes daily leaks nothing. */
const CLEAN_FROM_BUCKETS = 256;

/** One string per bucket; JSON keeps `a|b` and `c` apart from `a` and `b|c`. */
export function bucketKey({ baseUrl, account, endpoint }: BucketId): string {
  return JSON.stringify([baseUrl, account, endpoint]);
}

/** The buckets of one limiter. */
export class BucketRegistry<Bucket extends { isIdle(): boolean }> {
  readonly #buckets = new Map<string, Bucket>();
  #cleanFrom = CLEAN_FROM_BUCKETS;

  get(id: BucketId): Bucket | undefined {
    return this.#buckets.get(bucketKey(id));
  }

  add(id: BucketId, bucket: Bucket): Bucket {
    this.#forgetIdle();
    this.#buckets.set(bucketKey(id), bucket);
    return bucket;
  }

  /** Doubling the mark keeps the cost of looking constant per bucket that was made. */
  #forgetIdle(): void {
    if (this.#buckets.size < this.#cleanFrom) return;
    for (const [key, bucket] of this.#buckets) if (bucket.isIdle()) this.#buckets.delete(key);
    this.#cleanFrom = Math.max(CLEAN_FROM_BUCKETS, 2 * this.#buckets.size);
  }
}

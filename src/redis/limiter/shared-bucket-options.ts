import type { AbortGroups } from '../../limiter/abort-groups.ts';
import type { Availability, UnavailablePolicy } from './availability.ts';
import type { QueuedCall } from './call-queue.ts';
import type { ExchangeOptions } from './exchange.ts';

/** What a shared bucket is made of; see `RedisLimiterOptions`. */
export interface SharedBucketOptions extends ExchangeOptions {
  readonly maxQueue: number;
  readonly policy: UnavailablePolicy;
  readonly processes: number;
  readonly availability: Availability;
  readonly aborts: AbortGroups<QueuedCall>;
}

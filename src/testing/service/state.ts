import type { World } from '../world.ts';
import type { Failures } from './failures.ts';
import type { RequestLog } from './request-log.ts';

/** What `reset` replaces as a whole. */
export interface FakeState {
  readonly world: World;
  readonly failures: Failures;
  readonly requests: RequestLog;
}

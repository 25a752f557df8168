import { setTimeout as sleep } from 'node:timers/promises';
import { steadyNow } from './messages.ts';
import type { SoakPostgres, SoakRedis } from './servers.ts';
import type { SoakService } from './service.ts';

/** What a fault can lay its hands on. */
export interface Victims {
  readonly service: SoakService;
  readonly redis: SoakRedis;
  readonly postgres: SoakPostgres;
  /** Kills a receiver with SIGKILL and starts another in its place. */
  readonly killReceiver: () => Promise<void>;
  /** Sets the wall clock of every process. */
  readonly shiftClocks: (byMs: number) => Promise<void>;
}

/** Something that goes wrong, for as long as the function runs. */
export interface Fault {
  readonly name: string;
  /** Whether Redis is away meanwhile. */
  readonly isWithoutRedis?: boolean;
  readonly happen: (victims: Victims) => Promise<void>;
}

const HOUR_MS = 3_600_000;
/** Longer than `RedisLimiter` waits until it goes on by itself, and shorter than a lease, unless the machine is busy. */
const OUTAGE_MS = 5_000;
/** How long requests fail that are meant to. */
const FAILING_MS = 1_000;

/** Makes requests fail for a while. */
function failing(name: string, failure: Parameters<SoakService['fail']>[0], forMs = FAILING_MS): Fault {
  return {
    name,
    happen: async ({ service }) => {
      const planned = service.fail(failure);
      await sleep(forMs);
      planned.cancel();
    },
  };
}

/** Everything that fails, in turn. */
export const FAULTS: readonly Fault[] = [
  // Shorter than the pause that it asks for, so that the limiter sees it once.
  failing('429 to every call', { status: 429, retryAfter: 1 }, 500),
  failing('connections reset', { kind: 'reset' }),
  {
    name: 'Redis stopped and started',
    isWithoutRedis: true,
    happen: async ({ redis }) => {
      await redis.stop();
      await sleep(OUTAGE_MS);
      await redis.startAgain();
    },
  },
  failing('answers stall after half of the body', { kind: 'stall' }),
  { name: 'a receiver killed', happen: ({ killReceiver }) => killReceiver() },
  failing('bodies cut off', { kind: 'badJson' }),
  {
    name: 'PostgreSQL connections ended',
    happen: async ({ postgres }) => {
      await postgres.endConnections();
    },
  },
  failing('carried out, then reset', { kind: 'commitThenDrop' }),
  { name: 'clocks set back an hour', happen: ({ shiftClocks }) => shiftClocks(-HOUR_MS) },
  failing('no answer at all', { kind: 'timeout' }),
  {
    name: 'Redis does not answer',
    isWithoutRedis: true,
    happen: async ({ redis }) => {
      redis.freeze();
      await sleep(OUTAGE_MS);
      redis.thaw();
    },
  },
  failing('502 with a page of HTML', { kind: 'html' }),
  {
    name: 'Redis forgets everything (FLUSHALL)',
    happen: async ({ redis, service }) => {
      service.forgottenAt.push(steadyNow());
      await redis.forgetAll();
      service.forgottenAt.push(steadyNow());
    },
  },
];

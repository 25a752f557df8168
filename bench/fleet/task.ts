/** Ways in which processes of one account keep within its limit. */
export const CONTENDER_NAMES = ['RedisLimiter', 'rate-limiter-flexible', 'uncoordinated'] as const;

export type ContenderName = (typeof CONTENDER_NAMES)[number];

/** What one process of a fleet has to do. */
export interface PeerTask {
  readonly contender: ContenderName;
  readonly baseUrl: string;
  readonly account: string;
  readonly limit: number;
  readonly redisUrl: string;
  /** Put before every key in Redis: this fleet's own. */
  readonly namespace: string;
  readonly processes: number;
  readonly calls: number;
  /** How far this process's wall clock is ahead, in milliseconds. */
  readonly clockAheadMs: number;
}

/** What came of it. */
export interface PeerOutcome {
  readonly failed: number;
  readonly seconds: number;
  /** When each call ended, in milliseconds since the first began. */
  readonly endedAt: readonly number[];
  /** Commands sent to Redis from the first call to the last. */
  readonly redisCommands: number;
  /** What the limiter said about Redis. */
  readonly fallbacks: readonly string[];
}

/** A process is ready, or has ended its task. */
export type PeerMessage = 'ready' | PeerOutcome;

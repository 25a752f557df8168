/** Where a receiver remembers events: it has one inbox of each kind, and every webhook goes to all three. */
export const INBOXES = ['redis', 'postgres', 'transactional'] as const;
export type InboxName = (typeof INBOXES)[number];

/** What happens often enough to be counted: calls that were answered with results, and events handled by each inbox. */
export const SIGNALS = ['calls', ...INBOXES] as const;
export type Signal = (typeof SIGNALS)[number];

/** What every process is told, as JSON in its first argument. */
export interface MemberTask {
  readonly name: string;
  readonly baseUrl: string;
  readonly limitPerSecond: number;
  readonly processes: number;
  readonly redisUrl: string;
  readonly postgresUrl: string;
  /** A schema of PostgreSQL, which is the soak's own. */
  readonly schema: string;
  /** Connections that may be ended go by this name. */
  readonly applicationName: string;
  readonly secret: string;
  readonly trackerIds: readonly string[];
  /** File that takes one line for everything that must survive a SIGKILL. */
  readonly journal: string;
}

/** How the calls of a process went. */
export interface CallReport {
  /** Calls of `trackers.results` beside the polls that rejected, by the name of their error. */
  readonly rejected: Readonly<Record<string, number>>;
  readonly longestCallMs: number;
  /** Trackers that `pollMany` gave up. */
  readonly givenUp: number;
}

/** What a process still holds after it has closed everything. */
export interface Leftovers {
  readonly timers: number;
  readonly sockets: number;
}

/** What is in use on the heap of a process after a full collection. */
export interface HeapUse {
  /** All but what follows. What V8 notes beside compiled code, to undo it, is among this. */
  readonly dataMiB: number;
  /** What V8 compiled: it goes on for long, as more and more of what a fault runs has run often. */
  readonly codeMiB: number;
}

/** All that is in use. */
export function wholeMiB({ dataMiB, codeMiB }: HeapUse): number {
  return dataMiB + codeMiB;
}

/** What a process tells the soak. */
export type MemberMessage =
  | { readonly kind: 'ready'; readonly url?: string }
  | { readonly kind: 'tick'; readonly counts: Readonly<Partial<Record<Signal, number>>> }
  | { readonly kind: 'heap'; readonly use: HeapUse }
  | { readonly kind: 'shifted' }
  | { readonly kind: 'drained' }
  | { readonly kind: 'finished'; readonly calls: CallReport; readonly leftovers: Leftovers };

/** What the soak asks a process; each is answered once. */
export type Command =
  | { readonly kind: 'heap' }
  | { readonly kind: 'shift'; readonly byMs: number }
  | { readonly kind: 'drain' }
  | { readonly kind: 'finish' };

/** Longest time of a whole call beside the polls, in milliseconds. */
export const TOTAL_TIMEOUT_MS = 30_000;
/** Time of one attempt, in milliseconds: what a stall costs. */
export const TIMEOUT_MS = 3_000;

/**
 * How long a request may take to be counted, in milliseconds, as the limiters of all processes are told: seven processes on two
 * cores are late at times.
 */
export const MAX_UPLINK_MS = 2_000;
/** A request tells in this header when it left. */
export const SENT_AT_HEADER = 'x-sent-at';
/** How long an event is leased to a receiver, in milliseconds. */
export const LEASE_MS = 10_000;

/** Milliseconds since the epoch on a clock that nobody sets back, the same in all processes. */
export function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}

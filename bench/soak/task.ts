/** A receiver has one inbox of each kind, and every webhook goes to all three. */
export const INBOXES = ['redis', 'postgres', 'transactional'] as const;
export type InboxName = (typeof INBOXES)[number];

/** What every process is told, as JSON in its first argument. */
export interface MemberTask {
  readonly name: string;
  readonly role: 'poller' | 'receiver';
  readonly baseUrl: string;
  readonly limitPerSecond: number;
  readonly processes: number;
  readonly redisUrl: string;
  readonly postgresUrl: string;
  /** The soak's schema in PostgreSQL, the name of its connections there, and the prefix of its keys in Redis. */
  readonly schema: string;
  readonly secret: string;
  readonly trackerIds: readonly string[];
  /** The file that takes one line for everything that must survive a SIGKILL. */
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

/** The commands of the soak, and what a process replies to each. */
export interface Replies {
  /** Bytes on the heap. */
  heap: number;
  /** The wall clock was set, by the argument in milliseconds. */
  shift: null;
  /** Every tracker was polled once more. */
  drain: null;
  /** Everything is closed. */
  finish: CallReport;
}

/** What a process sends. */
export type MemberMessage =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'calls'; readonly count: number }
  | { readonly kind: 'reply'; readonly command: keyof Replies; readonly value: unknown };

/** Longest time of a call beside the polls. */
export const TOTAL_TIMEOUT_MS = 30_000;
/** A request tells in this header when it left. */
export const SENT_AT_HEADER = 'x-sent-at';

/** Milliseconds since the epoch on a clock that nobody sets back, the same in all processes. */
export function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}

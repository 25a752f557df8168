/** A receiver has one inbox of each kind, and every webhook goes to all three. */
export const INBOXES = ['redis', 'postgres', 'transactional'] as const;
export type InboxName = (typeof INBOXES)[number];

/** Every process gets its task as JSON in its first argument. */
export interface MemberTask {
  readonly name: string;
  readonly role: 'poller' | 'receiver';
  readonly baseUrl: string;
  readonly limitPerSecond: number;
  readonly processes: number;
  readonly redisUrl: string;
  readonly postgresUrl: string;
  /** Names the soak's schema and connections in PostgreSQL, and is the prefix of its keys in Redis. */
  readonly schema: string;
  readonly secret: string;
  readonly trackerIds: readonly string[];
  /** Path of the file that gets one line for each fact that must survive a SIGKILL. */
  readonly journal: string;
}

export interface CallReport {
  /** Counts rejected calls of `trackers.results` outside the polls, by the name of their error. */
  readonly rejected: Readonly<Record<string, number>>;
  readonly longestCallMs: number;
  /** Trackers that `pollMany` gave up. */
  readonly givenUp: number;
}

/** Bytes on the heap after a garbage collection. */
export interface HeapUse {
  /** Everything but compiled code. */
  readonly objects: number;
  /** Machine code and bytecode, which V8 still adds after minutes. */
  readonly code: number;
  /** Number of keys in the memory of a `MemoryDedupeStore`. */
  readonly keys: number;
}

/** Maps each command of the soak to the reply of a process. */
export interface Replies {
  /** Reports the bytes on the heap. */
  heap: HeapUse;
  /** Moves the wall clock by the argument in milliseconds. */
  shift: null;
  /** Polls every tracker once more. */
  drain: null;
  /** Closes everything. */
  finish: CallReport;
}

export type MemberMessage =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'calls'; readonly count: number }
  | { readonly kind: 'reply'; readonly command: keyof Replies; readonly value: unknown };

/** A call outside the polls may take this long. */
export const TOTAL_TIMEOUT_MS = 30_000;
/** This header contains the time at which a request was sent. */
export const SENT_AT_HEADER = 'x-sent-at';

/** Picks a random item; returns undefined if there is none. */
export function pick<Item>(items: readonly Item[]): Item | undefined {
  return items[Math.floor(Math.random() * items.length)];
}

/** Returns milliseconds since the epoch on a clock that nobody sets back and that all processes share. */
export function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}

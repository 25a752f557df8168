import { GUARD_MS, WINDOW_MS } from '../../limiter/token-pool.ts';

/** From an answer to the return of its token: one window and a little, as in one process. */
export const RETURN_MS = WINDOW_MS + GUARD_MS;

/** Tokens are given out this long before they come back, so that asking Redis costs no time of theirs. */
export const HORIZON_MS = 200;

/** How long before a token comes back its next holder should ask for it. */
export const LEAD_MS = 50;

/** A process that did not ask this long after its turn has lost the turn; it may be dead. */
export const LATE_MS = 150;

/** From the start of a lease to the sending of its request; whoever needs longer tells Redis. */
export const SEND_WITHIN_MS = 100;

/** By how much a lease grows that was granted and is not sent yet. */
export const RENEW_MS = 1_000;

/** How long before the end of its time an unsent lease is renewed. */
export const RENEW_AHEAD_MS = 30;

/** How long the news of an answer may wait for company; its token is out for a window anyway. */
export const REPORT_WITHIN_MS = 300;

/** How often Redis is tried while it is down and calls wait. */
export const PROBE_EVERY_MS = 250;

/** After an outage every process keeps to its share this long, until the slowest client has reconnected. */
export const DIVIDED_MS = 3_000;

/** How long the state of a bucket that nobody uses is kept. */
export const FORGET_AFTER_MS = 60 * 60 * 1_000;

/** A process whose turn is very near is not asked to come back sooner than this. */
export const SHORTEST_ASK_MS = 10;

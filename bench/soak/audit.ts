import { readFileSync } from 'node:fs';
import { LEASE_MS } from './messages.ts';
import type { Outage } from './pulse.ts';

/** What one process wrote down. */
export interface Journal {
  readonly file: string;
  /** When it was killed, in milliseconds since the epoch; undefined for one that was not. */
  readonly killedAt: number | undefined;
}

interface Line {
  readonly at: number;
  readonly what: string;
  /** What it is about: the inbox if there is one, and the key. */
  readonly about: string;
}

/** What became of the events of one kind. */
export interface Audit {
  readonly lost: number;
  /** How many times events were handled beyond the first. */
  readonly repeats: number;
  /** Of these: handled by a receiver that was killed before its commit. */
  readonly cutByKill: number;
  /** Of these: Redis forgot the claim or the commit. */
  readonly forgotten: number;
  /** Of these: the store was away until the lease had ended. */
  readonly outlasted: number;
  /** Of these: what nothing excuses. */
  readonly unexcused: number;
  /** The longest time in seconds from an event until it was handled for the first time. */
  readonly longestSeconds: number;
}

/** A handling, and whether a kill cut it off before its commit. */
export interface Handling {
  readonly at: number;
  readonly wasCut: boolean;
}

/** How long before its handling an event can have been claimed: what the time in between forgets is forgotten for it. */
const CLAIMED_BEFORE_MS = 5_000;

/** How long before a kill an event can have been handled that is not marked: 100 ms and a statement, on a busy machine. */
const CUT_WITHIN_MS = 1_000;

/** How long the slowest client needs until it is connected again. */
const RECONNECTED_WITHIN_MS = 3_000;

/** A time in which the store was away, in milliseconds since the epoch. */
export type Absence = Pick<Outage, 'from' | 'until'>;

/** The handlings that the journals tell of, by what they are about. */
export function readHandlings(journals: readonly Journal[], what: 'handled' | 'polled') {
  const handlings = new Map<string, Handling[]>();
  for (const { file, killedAt } of journals) {
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean).map(toLine);
    const committed = new Set(lines.flatMap((line) => (line.what === 'committed' ? line.about : [])));
    const last = new Map(lines.map((line) => [`${line.what} ${line.about}`, line]));
    for (const line of lines.filter((each) => each.what === what)) {
      const { at, about } = line;
      // A process is cut off in an event once at most: the last time.
      const isLast = last.get(`${what} ${about}`) === line;
      const wasCut =
        isLast && !committed.has(about) && killedAt !== undefined && killedAt - at < CUT_WITHIN_MS;
      handlings.set(about, [...(handlings.get(about) ?? []), { at, wasCut }]);
    }
  }
  return handlings;
}

/**
 * Compares what was handled with what should have been.
 *
 * @param expected - when each event happened, by its key
 * @param forgottenAt - when the store forgot everything
 * @param absences - when the store was away
 */
export function audit(
  expected: ReadonlyMap<string, number>,
  handlings: ReadonlyMap<string, readonly Handling[]>,
  forgottenAt: readonly number[],
  absences: readonly Absence[],
): Audit {
  const excuses = { cutByKill: 0, forgotten: 0, outlasted: 0, unexcused: 0 };
  const found = { lost: 0, repeats: 0, ...excuses, longestSeconds: 0 };
  for (const [key, happenedAt] of expected) {
    const all = (handlings.get(key) ?? []).toSorted((one, other) => one.at - other.at);
    const [first] = all;
    if (first === undefined) {
      found.lost += 1;
      continue;
    }
    found.longestSeconds = Math.max(found.longestSeconds, (first.at - happenedAt) / 1_000);
    found.repeats += all.length - 1;
    // A handling that was cut off excuses the one that made up for it, whichever of the two came first.
    const settled = all.filter(({ wasCut }) => !wasCut);
    found.cutByKill += all.length - Math.max(1, settled.length);
    for (const [index, { at }] of settled.entries()) {
      const before = settled[index - 1];
      if (before === undefined) continue;
      const wasForgotten = forgottenAt.some((time) => time > before.at - CLAIMED_BEFORE_MS && time < at);
      const wasOutlasted = absences.some((absence) => outlasts(absence, before.at, at));
      found[wasForgotten ? 'forgotten' : wasOutlasted ? 'outlasted' : 'unexcused'] += 1;
    }
  }
  return found;
}

/** Whether the store was away when a handling was to be committed, and until its lease had ended, so that it came again. */
function outlasts({ from, until }: Absence, handledAt: number, againAt: number): boolean {
  const leasedUntil = handledAt + LEASE_MS;
  const isUncommitted = handledAt > from - CUT_WITHIN_MS && handledAt < until;
  return isUncommitted && leasedUntil < until + RECONNECTED_WITHIN_MS && againAt > leasedUntil;
}

function toLine(line: string): Line {
  const [at = '', what = '', ...about] = line.split(' ');
  return { at: Number(at), what, about: about.join(' ') };
}

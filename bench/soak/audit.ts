import { readFileSync } from 'node:fs';

/** Records one fault; both times are in milliseconds since the epoch. */
export interface Outage {
  readonly name: string;
  readonly from: number;
  readonly until: number;
}

/** Records that an event was handled; `wasCut` is true if the process was killed right after. */
export interface Handling {
  readonly at: number;
  readonly wasCut: boolean;
}

/** Counts the events that one inbox, or the polls, lost or handled again. */
export interface Audit {
  readonly lost: number;
  /** Repeated handlings that neither a kill nor a flush explains. */
  readonly unexcused: number;
  /** Repeated handlings that a kill or a flush explains. */
  readonly excused: { readonly kill: number; readonly flush: number };
}

/** An event can be claimed this long before it is handled. */
const CLAIMED_BEFORE_MS = 5_000;
/** A callback and its commit take 100 ms, and more on a busy machine. */
const COMMITTED_WITHIN_MS = 1_000;

/** Reads the journals of all processes and groups their lines by inbox and event. */
export function readJournals(
  journals: readonly { readonly file: string; readonly killedAt: number | undefined }[],
): Map<string, Handling[]> {
  const handlings = new Map<string, Handling[]>();
  for (const { file, killedAt = Number.POSITIVE_INFINITY } of journals) {
    for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
      const [time = '', ...words] = line.split(' ');
      const key = words.join(' ');
      const at = Number(time);
      const handling = { at, wasCut: killedAt - at < COMMITTED_WITHIN_MS };
      handlings.set(key, [...(handlings.get(key) ?? []), handling]);
    }
  }
  return handlings;
}

/**
 * Compares the handled events with the expected ones.
 *
 * @param expected - the keys of `handlings` that must be there
 * @param flushes - the times at which the store was emptied
 */
export function audit(
  expected: readonly string[],
  handlings: ReadonlyMap<string, readonly Handling[]>,
  flushes: readonly Outage[],
): Audit {
  let [lost, unexcused] = [0, 0];
  const excused = { kill: 0, flush: 0 };
  for (const key of expected) {
    const all = (handlings.get(key) ?? []).toSorted((a, b) => a.at - b.at);
    if (all.length === 0) lost += 1;
    for (const [index, again] of all.slice(1).entries()) {
      const before = all[index] ?? again;
      const wasFlushed = flushes.some(
        ({ from, until }) => until > before.at - CLAIMED_BEFORE_MS && from < again.at,
      );
      if (before.wasCut || again.wasCut) excused.kill += 1;
      else if (wasFlushed) excused.flush += 1;
      else unexcused += 1;
    }
  }
  return { lost, unexcused, excused };
}

import type { Journal } from './fleet.ts';

/** What became of every event, read off the journals of all receivers. */
export interface Audit {
  /** Events that nobody handled. */
  readonly lost: readonly string[];
  /** How many times an event was handled beyond the first. */
  readonly repeats: number;
  /** Events that were handled again although no SIGKILL fell between their handling and their commit. */
  readonly unexcused: readonly string[];
}

/** Compares what was handled with what should have been. */
export function audit(keys: readonly string[], journals: readonly Journal[]): Audit {
  const handled = new Map<string, number>();
  /** Handlings that nothing may repeat: committed, or by a receiver that lived on to commit. */
  const settled = new Map<string, number>();
  for (const { wasKilled, lines } of journals) {
    const cut = new Set<string>();
    const committed = new Set(lines.filter(({ what }) => what === 'committed').map(({ key }) => key));
    for (const { what, key } of lines) {
      if (what !== 'handled') continue;
      add(handled, key);
      // One process is cut off in an event once at most.
      if (wasKilled && !committed.has(key) && !cut.has(key)) cut.add(key);
      else add(settled, key);
    }
  }
  const total = [...handled.values()].reduce((sum, times) => sum + times, 0);
  return {
    lost: keys.filter((key) => !handled.has(key)),
    repeats: total - handled.size,
    unexcused: [...settled].filter(([, times]) => times > 1).map(([key]) => key),
  };
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

import { SIGNALS, type Signal, steadyNow } from './messages.ts';

/** One time that something went wrong, in milliseconds since the epoch. */
export interface Outage {
  readonly name: string;
  readonly from: number;
  readonly until: number;
  /** When the next one began. */
  next: number;
}

/** The longest time in seconds without a sign of life: from the outage's beginning on, and once it was over. */
export interface Stall {
  readonly seconds: number;
  readonly afterSeconds: number;
}

/** What happened when, told by the processes ten times a second. */
export class Pulse {
  readonly totals = { calls: 0, redis: 0, postgres: 0, transactional: 0 } satisfies Record<Signal, number>;
  readonly #beats = new Map<Signal, { at: number; times: number }[]>(SIGNALS.map((signal) => [signal, []]));

  add(counts: Readonly<Partial<Record<Signal, number>>>): void {
    const at = steadyNow();
    for (const signal of SIGNALS) {
      const times = counts[signal];
      if (times === undefined) continue;
      this.totals[signal] += times;
      this.#beats.get(signal)?.push({ at, times });
    }
  }

  /** The longest stall in all outages of one kind. */
  stallOf(signal: Signal, outages: readonly Outage[]): Stall {
    const gaps = (edge: 'from' | 'until') =>
      outages.map((outage) => this.#longestGapMs(signal, outage[edge], outage.next));
    return {
      seconds: Math.max(...gaps('from')) / 1_000,
      afterSeconds: Math.max(...gaps('until')) / 1_000,
    };
  }

  /** How many a second there were in each of some slices of a time. */
  perSecond(signal: Signal, slices: number, from: number, until: number): number[] {
    const sliceMs = (until - from) / slices;
    const sums = Array.from({ length: slices }, () => 0);
    for (const { at, times } of this.#beats.get(signal) ?? []) {
      const slice = Math.floor((at - from) / sliceMs);
      if (slice in sums) sums[slice] = (sums[slice] ?? 0) + times;
    }
    return sums.map((sum) => (sum * 1_000) / sliceMs);
  }

  #longestGapMs(signal: Signal, from: number, to: number): number {
    const within = (this.#beats.get(signal) ?? []).filter(({ at }) => at > from && at < to);
    let [last, longest] = [from, 0];
    for (const at of [...within.map((beat) => beat.at), to]) {
      longest = Math.max(longest, at - last);
      last = at;
    }
    return longest;
  }
}

import { Fleet, type Journal } from './fleet.ts';
import type { ReceiverConfig } from './receiver-config.ts';
import { buildKey, type SendReport, sendTraffic, type Traffic } from './sender.ts';

/** Options of a run. */
export interface FleetRunOptions {
  readonly receivers: Omit<ReceiverConfig, 'journal'>;
  readonly size: number;
  readonly traffic: Traffic;
  /** How many events are sent before the traffic, without kills and outside of the measured time. Default: 0. */
  readonly warmUpEvents?: number | undefined;
  /** How many receivers are killed, spread over the traffic at random. */
  readonly kills: number;
  /** The receivers run these programs in turn. Default: `RECEIVER`. */
  readonly programs?: readonly string[] | undefined;
}

/** The audit of every event, from the journals of all receivers. */
interface Audit {
  /** Events that no receiver handled. */
  readonly lost: readonly string[];
  /** Number of times that an event was handled again. */
  readonly repeats: number;
  /** Events that were handled again although no SIGKILL fell between their handling and their commit. */
  readonly unexcused: readonly string[];
}

export interface FleetRunReport extends SendReport, Audit {
  readonly kills: number;
}

/** Sends traffic to a fleet of receiver processes, kills some of them, and audits the journals. */
export async function runFleet(options: FleetRunOptions): Promise<FleetRunReport> {
  const { receivers, size, traffic, warmUpEvents = 0, kills, programs } = options;
  const fleet = await Fleet.start(receivers, size, programs);
  const killAt = Array.from({ length: kills }, () => 0.05 + Math.random() * 0.75).sort();
  let sent: SendReport;
  let journals: readonly Journal[] = [];
  try {
    const warmUp = { ...traffic, events: warmUpEvents, firstEvent: traffic.events };
    await sendTraffic(warmUp, () => fleet.urls());
    sent = await sendTraffic(
      traffic,
      () => fleet.urls(),
      (share) => {
        while (killAt[0] !== undefined && share >= killAt[0]) {
          killAt.shift();
          fleet.killOne();
        }
      },
    );
  } finally {
    journals = await fleet.stop();
  }
  const keys = Array.from({ length: traffic.events + warmUpEvents }, (_, event) => buildKey(event));
  return { ...sent, ...audit(keys, journals), kills: fleet.kills };
}

/** Compares what was handled with what should have been. */
function audit(keys: readonly string[], journals: readonly Journal[]): Audit {
  const handled = new Map<string, number>();
  /** Counts the handlings that a kill cannot explain: each event may have one at most. */
  const settled = new Map<string, number>();
  for (const { wasKilled, lines } of journals) {
    const cutOff = new Set<string>();
    const committed = new Set(lines.filter(({ what }) => what === 'committed').map(({ key }) => key));
    for (const { what, key } of lines) {
      if (what !== 'handled') continue;
      add(handled, key);
      // A process can be killed during one event only.
      if (wasKilled && !committed.has(key) && !cutOff.has(key)) cutOff.add(key);
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

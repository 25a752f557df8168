import { type Audit, audit } from './audit.ts';
import { Fleet } from './fleet.ts';
import type { ReceiverConfig } from './receiver-config.ts';
import { keyOf, type SendReport, sendTraffic, type Traffic } from './sender.ts';

/** What to run. */
export interface FleetRunOptions {
  readonly receivers: Omit<ReceiverConfig, 'journal' | 'handlerMs' | 'leaseMs'>;
  readonly size: number;
  readonly traffic: Traffic;
  /** How many receivers are killed, spread over the traffic at random. */
  readonly kills: number;
}

/** What came of it. */
export interface FleetRunReport extends SendReport, Audit {
  readonly kills: number;
}

/** Sends traffic to a fleet of receiver processes, kills some of them, and audits the journals. */
export async function runFleet(options: FleetRunOptions): Promise<FleetRunReport> {
  const { receivers, size, traffic, kills } = options;
  // A lease outlives a stall of a busy machine, and not by much, for the events of the dead wait until it ends.
  const fleet = await Fleet.start({ ...receivers, leaseMs: 4_000, handlerMs: 4 }, size);
  const killAt = Array.from({ length: kills }, () => 0.05 + Math.random() * 0.75).sort();
  let sent: SendReport;
  let journals: Awaited<ReturnType<Fleet['stop']>> = [];
  try {
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
  const keys = Array.from({ length: traffic.events }, (_, event) => keyOf(event));
  return { ...sent, ...audit(keys, journals), kills: fleet.kills };
}

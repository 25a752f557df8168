import type { Command } from 'commander';
import { describeMilestone, sortEvents, type Tracking } from 'tracking-client';
import { addShipmentFlags, buildInput, createClient, rejectFlag, type ShipmentFlags } from './flags.ts';
import {
  CommandError,
  EXIT,
  formatClock,
  formatEstimate,
  formatReason,
  formatTimelineLine,
  NONE_TRACKED,
  plain,
  type Terminal,
} from './terminal.ts';
import { isAboutOneTracker } from './trackers.ts';

interface WatchFlags extends ShipmentFlags {
  readonly all?: boolean;
  readonly interval?: number;
}

const DEFAULT_INTERVAL_MS = 15 * 60_000;
const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
/** A new tracker has no events at first (docs/service.md 1.4), so its first polls do not wait for a long interval. */
const FIRST_RESULTS_INTERVAL_MS = 60_000;
const FIRST_RESULTS_POLLS = 10;

/** False while there is no news: no results, or results without events (docs/service.md 2.11). */
function hasEvents(tracking: Tracking | undefined): boolean {
  return (tracking?.events.length ?? 0) > 0;
}

export function addWatch(program: Command, terminal: Terminal): void {
  const command = program
    .command('watch [numbers...]')
    .summary('Print new events until no shipment is tracked any more')
    .description(
      'Print the new events of shipments until none of them is tracked any more. If a number has no ' +
        'tracker, this creates one, which is billed.',
    )
    .option('--all', 'watch every tracker that is still tracked')
    .option('--interval <time>', 'time between two polls, such as 2h (default: 15m)', parseInterval);
  addShipmentFlags(command).action(async (numbers: string[], flags: WatchFlags) => {
    if (numbers.length === 0 && !flags.all)
      throw new CommandError('`watch` needs tracking numbers, or --all for every tracker');
    if (numbers.length > 0 && flags.all)
      throw new CommandError('`watch` takes tracking numbers or --all, not both');
    await watch(numbers, flags, terminal);
  });
}

function parseInterval(text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,5})([smh])?$/.exec(text) ?? [];
  const intervalMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (intervalMs >= 1000 && intervalMs <= 24 * 3_600_000) return intervalMs;
  return rejectFlag('interval', 'a time from 1s to 24h, as in 30s, 15m or 2h', text);
}

/** Watches the numbers, or with `--all` every tracker that is still tracked. */
async function watch(numbers: readonly string[], flags: WatchFlags, terminal: Terminal): Promise<void> {
  const { interval: intervalMs = DEFAULT_INTERVAL_MS, json } = flags;
  const { signal, colours } = terminal;
  const numberById = new Map<string, string>();
  /** The estimate that was printed last. */
  const estimateById = new Map<string, string>();
  const { trackers } = createClient(flags, terminal, numberById);
  let ended = 0;

  const fail = (number: string, error: unknown) => {
    terminal.warn(`${number}  ${plain(formatReason(error))}`);
    terminal.exitCode = EXIT.failed;
  };
  const findIds = async function* () {
    if (flags.all)
      for await (const { trackerId, trackingNumber, isTracked } of trackers.listAll({}, { signal })) {
        if (isTracked === false) continue;
        numberById.set(trackerId, plain(trackingNumber));
        yield trackerId;
      }
    for (const number of numbers) {
      try {
        // A tracker that exists is found again, which uses no quota (docs/service.md 4.2).
        const { trackerId } = await trackers.create(buildInput(number, flags), { signal });
        numberById.set(trackerId, plain(number));
        yield trackerId;
      } catch (error) {
        if (!isAboutOneTracker(error)) throw error;
        fail(plain(number), error);
      }
    }
  };

  const polls = trackers.pollMany(findIds(), {
    intervalMs: ({ tracking, poll }) => {
      const isFirst = !hasEvents(tracking) && poll <= FIRST_RESULTS_POLLS;
      return isFirst ? Math.min(intervalMs, FIRST_RESULTS_INTERVAL_MS) : intervalMs;
    },
    initialDelayMs: 0,
    signal,
  });
  for await (const { id, tracking, newEvents, poll, stopped, error } of polls) {
    const trackingNumber = numberById.get(id) ?? id;
    const print = (text: string) => terminal.print(colours.bold(trackingNumber) + text);
    if (error !== undefined) fail(trackingNumber, error);
    for (const event of sortEvents(newEvents ?? []))
      if (json) terminal.printJson({ trackingNumber, trackerId: id, event });
      else terminal.print(formatTimelineLine(event, terminal, colours.bold(trackingNumber)));
    if (error !== undefined || stopped) ended += 1;
    if (json) continue;
    if (poll === 1 && !hasEvents(tracking)) print('  no results yet');
    const milestone = hasEvents(tracking) ? tracking?.shipment?.statusMilestone : undefined;
    const estimate = formatEstimate(tracking?.shipment);
    if (!stopped && estimate !== '' && estimate !== estimateById.get(id)) print(`  expected ${estimate}`);
    estimateById.set(id, estimate);
    const end = milestone ? describeMilestone(plain(milestone)) : 'no results';
    if (stopped) print(`  ${end}, and no longer tracked`);
    const counts = `${numberById.size} watched, ${ended} ended; last poll ${formatClock(Date.now(), colours)}.`;
    terminal.showStatus(ended < numberById.size ? `${counts} Ctrl-C stops watching.` : counts);
  }
  if (flags.all && numberById.size === 0) terminal.warn(NONE_TRACKED);
}

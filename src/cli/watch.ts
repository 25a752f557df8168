import type { Command } from 'commander';
import {
  type Logger,
  latestEvent,
  type PollContext,
  type PollManyUpdate,
  sortEvents,
  type TrackerInput,
  type TrackingClient,
  type TrackingEvent,
} from 'tracking-client';
import {
  addShipmentFlags,
  buildInput,
  type Context,
  createClient,
  createLogger,
  rejectFlag,
  type ShipmentFlags,
} from './flags.ts';
import { isAboutOneTracker } from './named-trackers.ts';
import { CommandError, EXIT, formatReason, type Terminal } from './terminal.ts';
import {
  describeNoneTracked,
  formatClock,
  formatEvent,
  formatMilestone,
  formatTable,
  formatTime,
  formatTimelineLine,
  plain,
} from './text.ts';

interface WatchFlags extends ShipmentFlags {
  readonly all?: boolean;
  readonly interval?: number;
}

const DEFAULT_INTERVAL_MS = 15 * 60_000;
const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
/** A new tracker has no results at first (docs/service.md 1.4), so its first polls do not wait for a long interval. */
const FIRST_RESULTS_INTERVAL_MS = 60_000;
const FIRST_RESULTS_POLLS = 10;
/** Number of screen lines without a row: the table's head and foot, a notice and the cursor. */
const OTHER_LINES = 5;

interface Row {
  readonly trackingNumber: string;
  status?: string | undefined;
  event?: TrackingEvent | undefined;
  nextPollAtMs: number | undefined;
  failure?: string;
}

export function addWatch(program: Command, { terminal, end }: Context): void {
  const command = program
    .command('watch [numbers...]')
    .summary('Print new events until no shipment is tracked any more')
    .description(
      'Print the new events of shipments until none of them is tracked any more. If a number has no ' +
        'tracker, this creates one, which is billed.',
    )
    .option('--all', 'watch all trackers that are still tracked')
    .option('--interval <time>', 'time between two polls, such as 2h (default: 15m)', parseInterval);
  addShipmentFlags(command).action(async (numbers: string[], flags: WatchFlags) => {
    if (numbers.length > 0 === (flags.all ?? false))
      throw new CommandError('`watch` takes either tracking numbers or --all');
    const inputs = flags.all ? undefined : numbers.map((number) => buildInput(number, flags));
    end(await new Watch((logger) => createClient(flags, logger), flags, terminal).run(inputs));
  });
}

function parseInterval(text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,5})([smh])?$/.exec(text) ?? [];
  const intervalMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (intervalMs >= 1000 && intervalMs <= 24 * 3_600_000) return intervalMs;
  return rejectFlag('interval', 'a time from 1s to 24h, as in 30s, 15m or 2h', text);
}

export class Watch {
  readonly #client: TrackingClient;
  readonly #flags: WatchFlags;
  readonly #terminal: Terminal;
  readonly #rowById = new Map<string, Row>();
  readonly #isLive: boolean;
  #untracked = 0;
  #drawnLines = 0;

  constructor(createClientWith: (logger: Logger) => TrackingClient, flags: WatchFlags, terminal: Terminal) {
    this.#client = createClientWith(createLogger((line) => this.#warn(line)));
    this.#flags = flags;
    this.#terminal = terminal;
    this.#isLive = terminal.stdout.isTTY === true && !flags.json;
  }

  async run(inputs: readonly TrackerInput[] | undefined): Promise<number> {
    const ids = inputs === undefined ? this.#listTracked() : this.#create(inputs);
    const polls = this.#client.trackers.pollMany(ids, {
      intervalMs: (context) => this.#chooseInterval(context),
      initialDelayMs: 0,
      signal: this.#terminal.signal,
    });
    for await (const update of polls) this.#show(update);
    if (this.#rowById.size === 0) this.#terminal.warn(describeNoneTracked(this.#untracked));
    return [...this.#rowById.values()].some(({ failure }) => failure !== undefined) ? EXIT.failed : EXIT.done;
  }

  async *#listTracked(): AsyncGenerator<string, void, undefined> {
    for await (const tracker of this.#client.trackers.listAll({ signal: this.#terminal.signal })) {
      if (!tracker.isTracked) {
        this.#untracked += 1;
        continue;
      }
      this.#add(tracker.trackerId, tracker.trackingNumber);
      yield tracker.trackerId;
    }
  }

  /** A tracker that exists is found again, which uses no quota (docs/service.md 4.2). */
  async *#create(inputs: readonly TrackerInput[]): AsyncGenerator<string, void, undefined> {
    for (const input of inputs) {
      try {
        const { trackerId } = await this.#client.trackers.create(input, { signal: this.#terminal.signal });
        if (!this.#rowById.has(trackerId)) this.#add(trackerId, input.trackingNumber);
        yield trackerId;
      } catch (error) {
        if (!isAboutOneTracker(error)) throw error;
        this.#fail(this.#add(input.trackingNumber, input.trackingNumber), error);
      }
    }
  }

  #add(id: string, trackingNumber: string): Row {
    const row: Row = { trackingNumber: plain(trackingNumber), nextPollAtMs: Date.now() };
    this.#rowById.set(id, row);
    this.#redraw();
    return row;
  }

  #chooseInterval({ id, tracking, poll }: PollContext): number {
    const { interval: intervalMs = DEFAULT_INTERVAL_MS } = this.#flags;
    const isFirst = tracking === undefined && poll <= FIRST_RESULTS_POLLS;
    const waitMs = isFirst ? Math.min(intervalMs, FIRST_RESULTS_INTERVAL_MS) : intervalMs;
    const row = this.#rowById.get(id);
    if (row !== undefined) row.nextPollAtMs = Date.now() + waitMs;
    return waitMs;
  }

  #show(update: PollManyUpdate): void {
    const row = this.#rowById.get(update.id);
    if (row === undefined) return;
    if (update.error !== undefined) {
      this.#fail(row, update.error);
      return;
    }
    const { tracking, newEvents, stopped, poll } = update;
    const { trackingNumber } = row;
    row.status = tracking?.shipment?.statusMilestone ?? undefined;
    row.event = latestEvent(tracking?.events ?? []);
    if (stopped) row.nextPollAtMs = undefined;
    if (this.#isLive) this.#redraw();
    else if (this.#flags.json) {
      for (const event of sortEvents(newEvents))
        this.#terminal.printJson({ trackingNumber, trackerId: update.id, event });
    } else {
      const { colours } = this.#terminal;
      for (const event of sortEvents(newEvents)) this.#print(row, formatTimelineLine(event, colours));
      if (poll === 1 && tracking === undefined) this.#print(row, '  no results yet');
      if (stopped) this.#print(row, `  ${plain(row.status ?? 'no results')}, and no longer tracked`);
    }
  }

  #fail(row: Row, error: unknown): void {
    row.nextPollAtMs = undefined;
    row.failure = plain(formatReason(error));
    this.#warn(`${row.trackingNumber}  ${row.failure}`);
  }

  /** Prints a warning above the table. The table is cleared first, because a line on stderr would break it. */
  #warn(line: string): void {
    this.#clear();
    this.#terminal.warn(line);
    this.#redraw();
  }

  #print({ trackingNumber }: Row, text: string): void {
    this.#terminal.print(`${this.#terminal.colours.bold(trackingNumber)}${text}`);
  }

  #clear(): void {
    if (this.#drawnLines === 0) return;
    // Go to column 1 (after Ctrl-C the cursor stands behind `^C`), up to the table's first line, and clear the rest.
    this.#terminal.stdout.write(`\r\u001b[${this.#drawnLines}A\u001b[0J`);
    this.#drawnLines = 0;
  }

  #redraw(): void {
    if (!this.#isLive || this.#rowById.size === 0) return;
    this.#clear();
    const table = this.#table();
    // Without line wrap, the terminal cuts each line at its edge.
    this.#terminal.print(`\u001b[?7l${table}\u001b[?7h`);
    this.#drawnLines = table.split('\n').length;
  }

  #table(): string {
    const { stdout, colours } = this.#terminal;
    const rows = [...this.#rowById.values()].sort((a, b) => Number(hasEnded(a)) - Number(hasEnded(b)));
    const shown = rows.slice(0, Math.max(1, (stdout.rows || 24) - OTHER_LINES));
    const head = ['Number', 'Status', 'Next poll', 'Last event'];
    const table = formatTable(
      head,
      shown.map((row) => this.#cells(row)),
    );
    const ended = rows.filter(hasEnded).length;
    const more = shown.length < rows.length ? `, ${rows.length - shown.length} of them not shown` : '';
    const hint = ended < rows.length ? ' Ctrl-C stops watching.' : '';
    return `${table}\n${colours.dim(`${rows.length} watched, ${ended} ended${more}.${hint}`)}`;
  }

  #cells({ trackingNumber, status, event, nextPollAtMs, failure }: Row): string[] {
    const { colours } = this.#terminal;
    if (failure !== undefined) return [trackingNumber, colours.red('failed'), '', failure];
    const state = status === undefined ? colours.dim('no results yet') : formatMilestone(status, colours);
    const next = nextPollAtMs === undefined ? colours.dim('ended') : formatClock(nextPollAtMs, colours);
    if (event === undefined) return [trackingNumber, state, next, ''];
    const when = colours.dim(formatTime(event.occurrenceDatetime));
    return [trackingNumber, state, next, `${when} ${formatEvent(event, colours)}`.trim()];
  }
}

function hasEnded({ nextPollAtMs }: Row): boolean {
  return nextPollAtMs === undefined;
}

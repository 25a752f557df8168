import { clearScreenDown, moveCursor } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';
import type {
  Logger,
  PollContext,
  PollManyUpdate,
  TrackerInput,
  TrackingClient,
  TrackingEvent,
} from 'tracking-client';
import { latestEvent, sortEvents } from 'tracking-client/webhooks';
import { isAboutOneTracker } from './named-trackers.ts';
import { makeLogger } from './service.ts';
import { tableText } from './table.ts';
import { EXIT, formatReason, print, printJson, type Terminal, warn } from './terminal.ts';
import { eventText, milestoneText, plain, timelineLine, timeText } from './text.ts';

/** A new tracker has its first results within minutes, whatever the interval is. */
const FIRST_RESULTS_INTERVAL_MS = 60_000;
const FIRST_RESULTS_POLLS = 10;
const REDRAW_MS = 1000;
/** Lines of the screen that are no rows: the head and the foot of the table, a notice, the cursor. */
const OTHER_LINES = 5;
const MIN_EVENT_WIDTH = 20;

/** What to watch: numbers, or every tracker that the service still tracks. */
export type Watched = { readonly inputs: readonly TrackerInput[] } | 'all';

interface WatchOptions {
  readonly intervalMs: number;
  readonly json?: boolean | undefined;
  readonly terminal: Terminal;
}

interface Row {
  readonly trackingNumber: string;
  status?: string | undefined;
  event?: TrackingEvent | undefined;
  /** Undefined once it is watched no more. */
  nextPollAtMs: number | undefined;
  /** Why it is watched no more; undefined when it has come to its end. */
  failure?: string;
}

/** Shows shipments until the service has stopped tracking all of them. */
export async function watch(
  clientWith: (logger: Logger) => TrackingClient,
  watched: Watched,
  options: WatchOptions,
): Promise<number> {
  return new Watch(clientWith, options).run(watched);
}

class Watch {
  readonly #client: TrackingClient;
  readonly #options: WatchOptions;
  readonly #terminal: Terminal;
  /** By the id of the tracker, or by the number where there is none. */
  readonly #rows = new Map<string, Row>();
  readonly #isLive: boolean;
  /** Lines of the table on the screen. */
  #drawnLines = 0;

  constructor(clientWith: (logger: Logger) => TrackingClient, options: WatchOptions) {
    this.#client = clientWith(makeLogger((line) => this.#warn(line)));
    this.#options = options;
    this.#terminal = options.terminal;
    this.#isLive = options.terminal.stdout.isTTY === true && !options.json;
  }

  async run(watched: Watched): Promise<number> {
    const ids = watched === 'all' ? this.#all() : this.#created(watched.inputs);
    const redraw = this.#isLive ? setInterval(() => this.#redraw(), REDRAW_MS) : undefined;
    const polls = this.#client.trackers.pollMany(ids, {
      intervalMs: (context) => this.#intervalOf(context),
      initialDelayMs: 0,
      signal: this.#terminal.signal,
    });
    try {
      for await (const update of polls) this.#show(update);
    } finally {
      clearInterval(redraw);
      this.#redraw();
    }
    if (this.#rows.size === 0) warn(this.#terminal, 'The service tracks none of your trackers');
    return [...this.#rows.values()].some(({ failure }) => failure !== undefined) ? EXIT.failed : EXIT.done;
  }

  async *#all(): AsyncGenerator<string, void, undefined> {
    for await (const tracker of this.#client.trackers.listAll({ signal: this.#terminal.signal })) {
      if (!tracker.isTracked) continue;
      this.#add(tracker.trackerId, tracker.trackingNumber);
      yield tracker.trackerId;
    }
  }

  /** A tracker that exists is found again, so this uses up no quota for it. */
  async *#created(inputs: readonly TrackerInput[]): AsyncGenerator<string, void, undefined> {
    for (const input of inputs) {
      try {
        const { trackerId } = await this.#client.trackers.create(input, { signal: this.#terminal.signal });
        if (!this.#rows.has(trackerId)) this.#add(trackerId, input.trackingNumber);
        yield trackerId;
      } catch (error) {
        if (!isAboutOneTracker(error)) throw error;
        this.#fail(this.#add(input.trackingNumber, input.trackingNumber), error);
      }
    }
  }

  #add(id: string, trackingNumber: string): Row {
    const row: Row = { trackingNumber: plain(trackingNumber), nextPollAtMs: Date.now() };
    this.#rows.set(id, row);
    return row;
  }

  #intervalOf({ id, tracking, poll }: PollContext): number {
    const { intervalMs } = this.#options;
    const isFirst = tracking === undefined && poll <= FIRST_RESULTS_POLLS;
    const waitMs = isFirst ? Math.min(intervalMs, FIRST_RESULTS_INTERVAL_MS) : intervalMs;
    const row = this.#rows.get(id);
    if (row !== undefined) row.nextPollAtMs = Date.now() + waitMs;
    return waitMs;
  }

  #show(update: PollManyUpdate): void {
    const row = this.#rows.get(update.id);
    if (row === undefined) return;
    if (update.error !== undefined) {
      this.#fail(row, update.error);
      return;
    }
    const { tracking, newEvents, stopped, poll } = update;
    row.status = tracking?.shipment?.statusMilestone ?? undefined;
    row.event = latestEvent(tracking?.events ?? []);
    if (stopped) row.nextPollAtMs = undefined;
    const { trackingNumber, status = null } = row;
    if (this.#isLive) {
      this.#redraw();
    } else if (this.#options.json) {
      const { trackerId } = tracking?.tracker ?? update.tracker ?? { trackerId: update.id };
      printJson(this.#terminal, { trackingNumber, trackerId, poll, status, newEvents, stopped });
    } else {
      const { colours } = this.#terminal;
      for (const event of sortEvents(newEvents)) this.#print(row, timelineLine(event, colours));
      if (poll === 1 && tracking === undefined) this.#print(row, '  no results yet');
      if (stopped) this.#print(row, `  ${plain(status ?? 'no results')}, and no longer tracked`);
    }
  }

  #fail(row: Row, error: unknown): void {
    row.nextPollAtMs = undefined;
    row.failure = plain(formatReason(error));
    const { trackingNumber, failure } = row;
    if (this.#options.json) printJson(this.#terminal, { trackingNumber, error: failure });
    else this.#warn(`${trackingNumber}  ${failure}`);
  }

  /** Above the table, which a line of another stream would tear apart. */
  #warn(line: string): void {
    this.#clear();
    warn(this.#terminal, line);
    this.#redraw();
  }

  #print({ trackingNumber }: Row, text: string): void {
    print(this.#terminal, `${this.#terminal.colours.bold(trackingNumber)}${text}`);
  }

  #clear(): void {
    if (this.#drawnLines === 0) return;
    moveCursor(this.#terminal.stdout, 0, -this.#drawnLines);
    clearScreenDown(this.#terminal.stdout);
    this.#drawnLines = 0;
  }

  #redraw(): void {
    if (!this.#isLive || this.#rows.size === 0) return;
    this.#clear();
    const table = this.#table();
    print(this.#terminal, table);
    this.#drawnLines = table.split('\n').length;
  }

  /** As many rows as the screen has room for; those that still move first. */
  #table(): string {
    const { stdout, colours } = this.#terminal;
    const room = Math.max(1, (stdout.rows ?? 24) - OTHER_LINES);
    const rows = [...this.#rows.values()].sort((a, b) => Number(hasEnded(a)) - Number(hasEnded(b)));
    const shown = rows.slice(0, room).map((row) => this.#cells(row));
    const head = ['Number', 'Status', 'Last event', 'Next poll'];
    const widths = head.map((_, index) =>
      Math.max(...[head, ...shown].map((cells) => widthOf(cells[index]))),
    );
    const [number = 0, status = 0, , next = 0] = widths.map((width) => width + 2);
    const event = Math.max(MIN_EVENT_WIDTH, (stdout.columns ?? 80) - number - status - next);
    const table = tableText(head, shown, [number, status, event, next]);
    const hidden = rows.length - room;
    const ended = rows.filter(hasEnded).length;
    const more = hidden > 0 ? `, ${hidden} of them not shown` : '';
    const hint = ended < rows.length ? ' Ctrl-C stops watching.' : '';
    return `${table}\n${colours.dim(`${rows.length} watched, ${ended} ended${more}.${hint}`)}`;
  }

  #cells({ trackingNumber, status, event, nextPollAtMs, failure }: Row): string[] {
    const { colours } = this.#terminal;
    if (failure !== undefined) return [trackingNumber, colours.red('failed'), failure, ''];
    const when = event === undefined ? '' : colours.dim(timeText(event.occurrenceDatetime));
    const what = event === undefined ? '' : eventText(event, colours);
    const state = status === undefined ? colours.dim('no results yet') : milestoneText(status, colours);
    const next = nextPollAtMs === undefined ? colours.dim('ended') : formatWait(nextPollAtMs - Date.now());
    return [trackingNumber, state, `${when} ${what}`.trim(), next];
  }
}

function hasEnded({ nextPollAtMs }: Row): boolean {
  return nextPollAtMs === undefined;
}

/** The width of a cell, colours not counted. */
function widthOf(cell = ''): number {
  return stripVTControlCharacters(cell).length;
}

function formatWait(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < 60) return seconds === 0 ? 'now' : `in ${seconds} s`;
  return `in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

import { type Command, Option } from 'commander';
import {
  ApiError,
  ConflictError,
  type Courier,
  InvalidRequestError,
  isTrackingError,
  NotFoundError,
  type RequestOptions,
  RequestValidationError,
  ResultsNotReadyError,
  sortEvents,
  type Tracker,
  type TrackerRequestOptions,
  type Tracking,
  type TrackingClient,
  type WebhookPush,
} from 'tracking-client';
import {
  addServiceFlags,
  addShipmentFlags,
  buildInput,
  createClient,
  type ServiceFlags,
  type ShipmentFlags,
  wholeNumber,
} from './flags.ts';
import { formatTable } from './layout.ts';
import {
  type Colours,
  CommandError,
  EXIT,
  formatEstimate,
  formatMilestone,
  formatReason,
  formatTime,
  formatTimelineLine,
  NONE_TRACKED,
  plain,
  type Terminal,
} from './terminal.ts';

const NAMES = ['id', 'client-id', 'number'] as const;

interface NamedTrackersFlags extends ServiceFlags {
  readonly by: (typeof NAMES)[number];
}

function byOption(preset: NamedTrackersFlags['by']): Option {
  return new Option('--by <kind>', 'kind of id: tracker id, your own id, or tracking number')
    .choices(NAMES)
    .default(preset);
}

/** Builds the options of a call; `--by` sets the kind of the id. */
function buildIdOptions({ by }: NamedTrackersFlags, { signal }: Terminal): TrackerRequestOptions {
  return { signal, ...(by === 'client-id' && { searchBy: 'clientTrackerId' }) };
}

interface ListFlags extends ServiceFlags {
  readonly limit: number;
  readonly tracked?: boolean;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 100_000;
const MAX_PAGE_SIZE = 500;
const NO_TRACKERS =
  'This account has no trackers; `npx --no-install tracking-client track NUMBER` creates one';

export function addTrack(program: Command, terminal: Terminal): void {
  const command = program
    .command('track <number>')
    .summary('Print a timeline; create a tracker if needed (billed)')
    .description(
      'Print the timeline of a shipment. If the number has no tracker, this creates one, which is billed; ' +
        '`show` never creates one.',
    );
  addShipmentFlags(command).action(async (number: string, flags: ShipmentFlags) => {
    const { trackers } = createClient(flags, terminal);
    const { signal } = terminal;
    const tracking = await trackers.track(buildInput(number, flags), { signal }).catch(ignoreNotReady);
    if (printTrackings([tracking], number, flags, terminal)) return;
    const name = plain(number);
    terminal.warn(
      `No results for ${name} yet; \`npx --no-install tracking-client watch ${name}\` waits for them`,
    );
    terminal.exitCode = EXIT.noResults;
  });
}

export function addShow(program: Command, terminal: Terminal): void {
  const command = program
    .command('show <tracker>')
    .summary('Print the results of a tracker, and create nothing')
    .description(
      'Print the results of a tracker, and never create one. Give a tracking number, or another kind of id with --by.',
    )
    .addOption(byOption('number'));
  addServiceFlags(command).action(async (name: string, flags: NamedTrackersFlags) => {
    const { trackers } = createClient(flags, terminal);
    const options = buildIdOptions(flags, terminal);
    const found =
      flags.by === 'number'
        ? await readByNumber(trackers, name, options)
        : [await trackers.results(name, options).catch(ignoreNotReady).catch(nameTracker(name, flags))];
    if (printTrackings(found, name, flags, terminal)) return;
    const missing =
      flags.by === 'number'
        ? `Found no results for ${plain(name)}: either no tracker has this number, or its tracker has no results yet`
        : `The tracker ${plain(name)} has no results yet`;
    terminal.warn(`${missing}; \`npx --no-install tracking-client list\` shows your trackers`);
    terminal.exitCode = EXIT.noResults;
  });
}

/** Reads the results of a number. The service responds with 404 or an empty list if no tracker has the number. */
async function readByNumber(
  trackers: TrackingClient['trackers'],
  number: string,
  options: RequestOptions,
): Promise<Tracking[]> {
  try {
    return await trackers.resultsByTrackingNumber(number, options);
  } catch (error) {
    if (error instanceof ResultsNotReadyError || isTrackingError(error, 'tracker_not_found')) return [];
    throw error;
  }
}

/** Turns the error for missing results into undefined. */
function ignoreNotReady(error: unknown): undefined {
  if (error instanceof ResultsNotReadyError) return undefined;
  throw error;
}

/** Formats the reason of a failure for a line that names the tracker already. */
function formatFailure(error: unknown): string {
  // A response without a code may come from another server; then the URL in the message helps to find the mistake.
  if (!(error instanceof ApiError) || error.code === undefined) return formatReason(error);
  const { status, code, errors, requestId } = error;
  const { message } = errors.find((item) => item.code === code) ?? {};
  const request = requestId === undefined ? '' : ` (request id ${requestId})`;
  return `the service responded with ${status}: ${[code, message].filter(Boolean).join(': ')}${request}`;
}

/** Formats the reason why a command cannot use a tracker. People often pass a tracking number where an id is expected. */
function formatTrackerFailure(error: unknown, { by }: NamedTrackersFlags): string {
  const reason = formatFailure(error);
  return error instanceof NotFoundError && by === 'id'
    ? `${reason}; if this is a tracking number, add --by number`
    : reason;
}

/** Adds the id to the error about an unknown id, because messages of the library leave out ids. */
function nameTracker(name: string, flags: NamedTrackersFlags): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof NotFoundError)) throw error;
    throw new CommandError(`${plain(name)}: ${formatTrackerFailure(error, flags)}`, EXIT.failed);
  };
}

/** Prints the milestone and the events of each tracking, or the whole tracking as JSON; returns false if there are no events. */
function printTrackings(
  trackings: readonly (Tracking | undefined)[],
  number: string,
  { json }: ServiceFlags,
  terminal: Terminal,
): boolean {
  const { colours } = terminal;
  let hasEvents = false;
  for (const tracking of trackings) {
    if (tracking === undefined) continue;
    const { tracker, shipment } = tracking;
    const events = sortEvents(tracking.events ?? []);
    hasEvents ||= events.length > 0;
    if (json) terminal.printJson(tracking);
    if (json || events.length === 0) continue;
    const title = colours.bold(plain(tracker?.trackingNumber ?? number));
    terminal.print(`${title}  ${formatMilestone(shipment?.statusMilestone, colours)}`);
    const expected = formatEstimate(shipment);
    if (expected !== '') terminal.print(`  expected ${expected}`);
    for (const event of events) terminal.print(formatTimelineLine(event, terminal));
  }
  return hasEvents;
}

const OTHER_IDS = 'or another kind of id with --by.';
const GIVE_IDS = `Give tracker ids, ${OTHER_IDS}`;

type Action = (
  client: TrackingClient,
  id: string,
  options: TrackerRequestOptions,
) => Promise<{ readonly value: unknown; readonly text: string }>;

function addAction(command: Command, terminal: Terminal, act: Action): void {
  command.addOption(byOption('id'));
  addServiceFlags(command).action(async (names: string[], flags: NamedTrackersFlags) => {
    const client = createClient(flags, terminal);
    const { by, json } = flags;
    const options = buildIdOptions(flags, terminal);
    for (const name of names) {
      try {
        const id = by === 'number' ? await findByNumber(client, name, terminal.signal) : name;
        const { value, text } = await act(client, id, options);
        if (json) terminal.printJson(value);
        else terminal.print(text);
      } catch (error) {
        if (!isAboutOneTracker(error)) throw error;
        const message = plain(formatTrackerFailure(error, flags));
        if (json) terminal.printJson({ name, error: message });
        else terminal.warn(`${plain(name)}  ${message}`);
        const exitCode = error instanceof CommandError ? error.exitCode : EXIT.failed;
        // A failure outweighs a number without a tracker.
        if (terminal.exitCode !== EXIT.failed) terminal.exitCode = exitCode;
      }
    }
  });
}

/** Adds `stop`, which also frees the client ids of the trackers (docs/service.md 5.2). */
export function addStop(program: Command, terminal: Terminal): void {
  const command = program
    .command('stop <trackers...>')
    .summary('Stop tracking shipments')
    .description(`Stop tracking shipments. ${GIVE_IDS}`);
  const { colours } = terminal;
  addAction(command, terminal, async ({ trackers }, id, options) => {
    const tracker = await trackers.update(id, { isSubscribed: false }, options);
    const number = colours.bold(plain(tracker.trackingNumber));
    return { value: tracker, text: `${number}  no longer tracked  ${colours.dim(plain(tracker.trackerId))}` };
  });
}

export function addResend(program: Command, terminal: Terminal): void {
  const command = program
    .command('resend <trackers...>')
    .summary('Ask the service to send the webhooks of trackers again')
    .description(`Ask the service to send the webhooks of trackers again. ${GIVE_IDS}`);
  addAction(command, terminal, async ({ trackers }, id, options) => {
    const { totalResent = null } = await trackers.resendWebhookEvents(id, options);
    const events =
      totalResent === null ? 'its events' : `${plain(totalResent)} event${totalResent === 1 ? '' : 's'}`;
    const text = `${terminal.colours.bold(plain(id))}  ${events} will be sent again`;
    return { value: { id, totalResent }, text };
  });
}

export function addHistory(program: Command, terminal: Terminal): void {
  const command = program
    .command('history <tracker>')
    .summary('Print the webhooks that were sent for a tracker')
    .description(
      `Print the webhooks that the service sent for a tracker, newest first. Give a tracker id, ${OTHER_IDS}`,
    )
    .addOption(byOption('id'));
  addServiceFlags(command).action(async (name: string, flags: NamedTrackersFlags) => {
    const client = createClient(flags, terminal);
    const id = flags.by === 'number' ? await findByNumber(client, name, terminal.signal) : name;
    const options = buildIdOptions(flags, terminal);
    const { webhooks } = await client.trackers.webhookHistory(id, options).catch(nameTracker(name, flags));
    for (const push of webhooks)
      if (flags.json) terminal.printJson(push);
      else terminal.print(formatPush(push, terminal));
    if (webhooks.length > 0) return;
    terminal.warn(`The service has sent no webhooks for ${plain(name)} yet`);
    terminal.exitCode = EXIT.noResults;
  });
}

/** Formats one push: its mark and time, the status of the receiver's response, and the first line of its body. */
function formatPush(push: WebhookPush, { colours }: Terminal): string {
  const { status, pushTimestamp, responseStatusCode, responseBody } = push;
  const hasFailed = status !== 'success';
  const mark = hasFailed ? colours.red('✗') : colours.green('✓');
  const [line = ''] =
    typeof responseBody === 'string' ? responseBody.trimStart().split('\n') : [responseBody];
  const code = plain(responseStatusCode ?? 'no response');
  const answer = [hasFailed ? `${plain(status ?? 'unknown')}:` : '', code, plain(line)]
    .filter(Boolean)
    .join(' ');
  return `${mark} ${colours.dim(formatTime(pushTimestamp) || 'no time')}  ${answer}`;
}

/** True for an error that concerns one tracker only, so that the command goes on with the next tracker. */
export function isAboutOneTracker(error: unknown): boolean {
  return [RequestValidationError, InvalidRequestError, ConflictError, NotFoundError, CommandError].some(
    (type) => error instanceof type,
  );
}

/** Numbers are not unique (docs/service.md 4.4), so if several trackers have the number, the error names their ids. */
async function findByNumber(client: TrackingClient, number: string, signal: AbortSignal): Promise<string> {
  const trackings = await readByNumber(client.trackers, number, { signal });
  const ids = [...new Set(trackings.flatMap(({ tracker }) => tracker?.trackerId ?? []))];
  const [id] = ids;
  if (id === undefined)
    throw new CommandError(
      'no tracker with results has this number; if yours has no results yet, look up its id with `npx --no-install tracking-client list`, and pass the id with --by id',
      EXIT.noResults,
    );
  if (ids.length > 1)
    throw new CommandError(
      `${ids.length} trackers have this number; pass one of these ids with --by id: ${ids.map(plain).join(', ')}`,
      EXIT.failed,
    );
  return id;
}

export function addList(program: Command, terminal: Terminal): void {
  const command = program
    .command('list')
    .description('List the trackers of the account, newest first')
    .option('--tracked', 'list only trackers that are still tracked')
    .option(
      '--limit <number>',
      'maximum number of trackers',
      wholeNumber('limit', MAX_LIMIT, 1),
      DEFAULT_LIMIT,
    );
  addServiceFlags(command).action(async (flags: ListFlags) => {
    const { limit, tracked = false, json } = flags;
    const found: Tracker[] = [];
    // The filter may skip any number of trackers, so read the largest pages.
    const pageSize = tracked ? MAX_PAGE_SIZE : Math.min(limit + 1, MAX_PAGE_SIZE);
    const { trackers } = createClient(flags, terminal);
    for await (const tracker of trackers.listAll(
      { sort: -1, limit: pageSize },
      { signal: terminal.signal },
    )) {
      if (!tracked || tracker.isTracked !== false) found.push(tracker);
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    if (json) for (const tracker of shown) terminal.printJson(tracker);
    else if (shown.length > 0) terminal.print(formatTrackers(shown, terminal));
    if (found.length > limit)
      terminal.warn(`These are the newest ${limit} trackers; a higher --limit shows more`);
    else if (found.length === 0) terminal.warn(tracked ? NONE_TRACKED : NO_TRACKERS);
  });
}

function formatTrackers(trackers: readonly Tracker[], terminal: Terminal): string {
  const { colours } = terminal;
  const rows = trackers.map(({ trackingNumber, isTracked, createdAt, trackerId, clientTrackerId }) => [
    plain(trackingNumber),
    formatState(isTracked, colours),
    // The time of day would push the ids off a screen of 80 columns.
    formatTime(plain(createdAt).slice(0, 10)),
    plain(trackerId),
    plain(clientTrackerId),
  ]);
  const head = ['Number', 'State', 'Created', 'Id', 'Client id'];
  const width = rows.some((cells) => cells.at(-1) !== '') ? head.length : head.length - 1;
  const cut = (cells: readonly string[]) => cells.slice(0, width);
  return formatTable(cut(head), rows.map(cut), terminal);
}

/** A response may lack `isTracked`, or have a value of another type there; then the state is unknown. */
function formatState(isTracked: unknown, colours: Colours): string {
  if (isTracked === true) return colours.green('tracked');
  return colours.dim(isTracked === false ? 'stopped' : 'unknown');
}

export function addCouriers(program: Command, terminal: Terminal): void {
  const command = program
    .command('couriers [text]')
    .description('List all couriers, or those that match a text');
  addServiceFlags(command).action(async (text: string | undefined, flags: ServiceFlags) => {
    const options = { deprecated: true, signal: terminal.signal };
    const found = await createClient(flags, terminal).couriers.find(text ?? '', options);
    if (found.length === 0) {
      const what =
        text === undefined ? '' : ` with ${JSON.stringify(plain(text))} in its code, name or country`;
      terminal.warn(`No courier was found${what}; \`npx --no-install tracking-client couriers\` lists all`);
      terminal.exitCode = EXIT.noResults;
    } else if (flags.json) for (const courier of found) terminal.printJson(courier);
    else
      terminal.print(
        formatTable(['Code', 'Name', 'Country', 'Required fields'], found.map(formatCourier), terminal),
      );
  });
}

function formatCourier({ courierCode, courierName, countryCode, requiredFields, isDeprecated }: Courier) {
  const fields: readonly unknown[] = Array.isArray(requiredFields) ? requiredFields : [requiredFields];
  const needs = [...fields.map(plain), isDeprecated ? '(deprecated)' : ''].filter(Boolean).join(', ');
  return [...[courierCode, courierName, countryCode].map(plain), needs];
}

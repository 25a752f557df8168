import type { Command } from 'commander';
import {
  ConflictError,
  InvalidRequestError,
  NotFoundError,
  RequestValidationError,
  type TrackerRequestOptions,
  type TrackingClient,
} from 'tracking-client';
import {
  addServiceFlags,
  buildIdOptions,
  byOption,
  type Context,
  createClient,
  type NamedTrackersFlags,
} from './flags.ts';
import { CommandError, EXIT, formatReason } from './terminal.ts';
import { plain } from './text.ts';
import { ignoreNotReady } from './track.ts';

type Action = (
  client: TrackingClient,
  id: string,
  options: TrackerRequestOptions,
) => Promise<{ readonly value: unknown; readonly text: string }>;

function addAction(command: Command, { terminal, logger, end }: Context, act: Action): void {
  command.addOption(byOption('id'));
  addServiceFlags(command).action(async (names: string[], flags: NamedTrackersFlags) => {
    const client = createClient(flags, logger);
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
        const message = plain(formatReason(error));
        if (json) terminal.printJson({ name, error: message });
        else terminal.warn(`${plain(name)}  ${message}`);
        end(EXIT.failed);
      }
    }
  });
}

/** Adds `stop`, which also frees the client ids of the trackers (docs/service.md 5.2). */
export function addStop(program: Command, context: Context): void {
  const command = program.command('stop <trackers...>').description('Stop tracking shipments');
  const { colours } = context.terminal;
  addAction(command, context, async ({ trackers }, id, options) => {
    const tracker = await trackers.update(id, { isSubscribed: false }, options);
    const number = colours.bold(plain(tracker.trackingNumber));
    return { value: tracker, text: `${number}  no longer tracked  ${colours.dim(plain(tracker.trackerId))}` };
  });
}

export function addResend(program: Command, context: Context): void {
  const command = program
    .command('resend <trackers...>')
    .description('Ask the service to send the webhooks of trackers again');
  addAction(command, context, async ({ trackers }, id, options) => {
    const { totalResent = null } = await trackers.resendWebhookEvents(id, options);
    const events =
      totalResent === null ? 'its events' : `${plain(totalResent)} event${totalResent === 1 ? '' : 's'}`;
    const text = `${context.terminal.colours.bold(plain(id))}  ${events} will be sent again`;
    return { value: { id, totalResent }, text };
  });
}

/** True for an error that concerns one tracker only, so that the command goes on with the next tracker. */
export function isAboutOneTracker(error: unknown): boolean {
  return [RequestValidationError, InvalidRequestError, ConflictError, NotFoundError, CommandError].some(
    (type) => error instanceof type,
  );
}

/** Numbers are not unique (docs/service.md 4.4), so if several trackers have the number, the error names their ids. */
async function findByNumber(client: TrackingClient, number: string, signal: AbortSignal): Promise<string> {
  const trackings = await client.trackers.resultsByTrackingNumber(number, { signal }).catch(ignoreNotReady);
  const ids = [...new Set(trackings?.flatMap(({ tracker }) => tracker?.trackerId ?? []))];
  const [id] = ids;
  if (id === undefined)
    throw new CommandError(
      'no tracker with results has this number; give the id that `tracking-client list` shows, with --by id',
    );
  if (ids.length > 1)
    throw new CommandError(
      `${ids.length} trackers have this number; give one of their ids with --by id: ${ids.map(plain).join(', ')}`,
    );
  return id;
}

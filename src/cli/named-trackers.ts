import {
  ConflictError,
  InvalidRequestError,
  NotFoundError,
  RequestValidationError,
  ResultsNotReadyError,
  type TrackerRequestOptions,
  type TrackingClient,
} from 'tracking-client';
import { CommandError, EXIT, formatReason, print, printJson, type Terminal, warn } from './terminal.ts';
import { plain } from './text.ts';

/** The values of `--by`. They say which name of a tracker the command line gives. */
export const NAMES = ['id', 'client-id', 'number'] as const;

export interface NamedTrackersOptions {
  readonly by: (typeof NAMES)[number];
  readonly json?: boolean | undefined;
  readonly terminal: Terminal;
}

/** True for an error that the next name may not meet. */
export function isAboutOneTracker(error: unknown): boolean {
  return [
    RequestValidationError,
    InvalidRequestError,
    ConflictError,
    NotFoundError,
    ResultsNotReadyError,
    CommandError,
  ].some((type) => error instanceof type);
}

/** The result of an action: a value for programs, and a line for people. */
export interface NamedOutcome {
  readonly value: unknown;
  readonly text: string;
}

/** Runs an action for one tracker after the other. Each prints one line; one that fails does not stop the others. */
export async function forEachNamed(
  client: TrackingClient,
  names: readonly string[],
  { by, json, terminal }: NamedTrackersOptions,
  action: (id: string, options: TrackerRequestOptions) => Promise<NamedOutcome>,
): Promise<number> {
  const { signal } = terminal;
  let exitCode: number = EXIT.done;
  for (const name of names) {
    try {
      const id = by === 'number' ? await findByNumber(client, name, signal) : name;
      const request = { signal, ...(by === 'client-id' && { searchBy: 'clientTrackerId' as const }) };
      const { value, text } = await action(id, request);
      if (json) printJson(terminal, value);
      else print(terminal, text);
    } catch (error) {
      if (!isAboutOneTracker(error)) throw error;
      const message = plain(formatReason(error));
      if (json) printJson(terminal, { name, error: message });
      else warn(terminal, `${plain(name)}  ${message}`);
      exitCode = EXIT.failed;
    }
  }
  return exitCode;
}

/** Numbers are not unique: of several trackers it is not for us to choose. */
async function findByNumber(client: TrackingClient, number: string, signal: AbortSignal): Promise<string> {
  const trackings = await client.trackers.resultsByTrackingNumber(number, { signal });
  const ids = [...new Set(trackings.flatMap(({ tracker }) => tracker?.trackerId ?? []))];
  const [id] = ids;
  if (id === undefined) throw new CommandError('No tracker with results has this number; `list` shows ids');
  if (ids.length > 1) throw new CommandError(`${ids.length} trackers have this number: ${ids.join(', ')}`);
  return id;
}

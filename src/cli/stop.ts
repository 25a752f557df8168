import type { Command } from 'commander';
import type { Context } from './flags.ts';
import { addNamedTrackersAction } from './named-trackers.ts';
import { plain } from './text.ts';

/** `stop` also frees the client ids of the trackers. */
export function addStop(program: Command, context: Context): void {
  const command = program.command('stop <trackers...>').description('stop tracking shipments, for good');
  const { colours } = context.terminal;
  addNamedTrackersAction(command, context, async (client, id, options) => {
    const tracker = await client.trackers.update(id, { isSubscribed: false }, options);
    const number = colours.bold(plain(tracker.trackingNumber));
    return { value: tracker, text: `${number}  no longer tracked  ${colours.dim(plain(tracker.trackerId))}` };
  });
}

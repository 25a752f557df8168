import type { Command } from 'commander';
import type { Context } from './flags.ts';
import { addNamedTrackersAction } from './named-trackers.ts';
import { plain } from './text.ts';

export function addResend(program: Command, context: Context): void {
  const command = program.command('resend <trackers...>').description('have webhooks sent again');
  const { colours } = context.terminal;
  addNamedTrackersAction(command, context, async (client, id, options) => {
    const { totalResent } = await client.trackers.resendWebhookEvents(id, options);
    const count =
      totalResent === undefined ? 'its events' : `${totalResent} event${totalResent === 1 ? '' : 's'}`;
    return {
      value: { id, totalResent: totalResent ?? null },
      text: `${colours.bold(plain(id))}  ${count} will be sent again`,
    };
  });
}

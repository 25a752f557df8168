import type { TrackingClient } from 'tracking-client';
import { forEachNamed, type NamedTrackersOptions } from './named-trackers.ts';
import { print, printJson } from './terminal.ts';
import { plain } from './text.ts';

/** Has the webhook events of trackers pushed again. */
export function resend(
  client: TrackingClient,
  names: readonly string[],
  options: NamedTrackersOptions,
): Promise<number> {
  const { json, terminal } = options;
  return forEachNamed(client, names, options, async (id, request) => {
    const { totalResent } = await client.trackers.resendWebhookEvents(id, request);
    if (json) return printJson(terminal, { id, totalResent: totalResent ?? null });
    const count =
      totalResent === undefined ? 'its events' : `${totalResent} event${totalResent === 1 ? '' : 's'}`;
    print(terminal, `${terminal.colours.bold(plain(id))}  ${count} will be sent again`);
  });
}

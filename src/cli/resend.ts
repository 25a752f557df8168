import type { TrackingClient } from 'tracking-client';
import { forEachNamed, type NamedTrackersOptions } from './named-trackers.ts';
import { plain } from './text.ts';

/** Has the webhook events of trackers pushed again. */
export function resend(
  client: TrackingClient,
  names: readonly string[],
  options: NamedTrackersOptions,
): Promise<number> {
  const { colours } = options.terminal;
  return forEachNamed(client, names, options, async (id, request) => {
    const { totalResent } = await client.trackers.resendWebhookEvents(id, request);
    const count =
      totalResent === undefined ? 'its events' : `${totalResent} event${totalResent === 1 ? '' : 's'}`;
    return {
      value: { id, totalResent: totalResent ?? null },
      text: `${colours.bold(plain(id))}  ${count} will be sent again`,
    };
  });
}

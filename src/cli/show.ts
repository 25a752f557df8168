import type { Command } from 'commander';
import {
  addServiceFlags,
  buildIdOptions,
  byOption,
  type Context,
  createClient,
  type NamedTrackersFlags,
} from './flags.ts';
import { EXIT } from './terminal.ts';
import { plain, printTracking } from './text.ts';
import { ignoreNotReady } from './track.ts';

export function addShow(program: Command, { terminal, logger, end }: Context): void {
  const command = program
    .command('show <tracker>')
    .summary('Print the results of a tracker; only reads')
    .description('Print the results of a tracker. This only reads: it never creates a tracker.')
    .addOption(byOption('number'));
  addServiceFlags(command).action(async (name: string, flags: NamedTrackersFlags) => {
    const { trackers } = createClient(flags, logger);
    const options = buildIdOptions(flags, terminal);
    const found =
      flags.by === 'number'
        ? await trackers.resultsByTrackingNumber(name, options).catch(ignoreNotReady)
        : await trackers.results(name, options).then((tracking) => [tracking], ignoreNotReady);
    let hasEvents = false;
    for (const tracking of found ?? [])
      hasEvents = printTracking(tracking, name, flags, terminal) || hasEvents;
    if (hasEvents) return;
    terminal.warn(`No results for ${plain(name)}; \`tracking-client list\` shows your trackers`);
    end(EXIT.noResults);
  });
}

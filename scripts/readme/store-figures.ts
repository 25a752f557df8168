import { code, markdownTable } from '../support/markdown-table.ts';
import { found, type Results } from './results.ts';

const STORES = [
  { inbox: 'redis', words: `${code('RedisDedupeStore')}, client ${code('redis')}` },
  { inbox: 'ioredis', words: `${code('RedisDedupeStore')}, client ${code('ioredis')}` },
  { inbox: 'postgres', words: code('PostgresDedupeStore') },
  { inbox: 'postgres transactional', words: code('transactionalInbox') },
];

export type StoreFleet = Results['stores']['fleets'][number];

/** What receivers did that were killed now and then. */
export function killedFleet({ stores }: Results, inbox: string): StoreFleet {
  return found(
    stores.fleets.find((fleet) => fleet.inbox === inbox && fleet.kills > 0),
    inbox,
  );
}

function calmFleet({ stores }: Results, inbox: string): StoreFleet {
  return found(
    stores.fleets.find((fleet) => fleet.inbox === inbox && fleet.kills === 0),
    inbox,
  );
}

/** How the shared stores fare with receivers that are killed. */
export function storeFigures(results: Results): string {
  const rows = STORES.map(({ inbox, words }) => {
    const { events, seconds } = calmFleet(results, inbox);
    const { kills, lost, repeats } = killedFleet(results, inbox);
    const perSecond = Math.round(events / seconds).toLocaleString('en-US');
    return [words, perSecond, `${kills}`, `${lost}`, `${repeats}`];
  });
  return markdownTable(
    ['Store', 'Events per second, undisturbed', 'Receivers killed', 'Lost', 'Handled twice'],
    rows,
  );
}

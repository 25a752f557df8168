import { cpus } from 'node:os';
import type { FleetResult } from './fleets.ts';

/** Everything that was measured in one run. */
export interface StoresReport {
  readonly measuredOn: string;
  readonly node: string;
  readonly cpu: string;
  readonly fleets: readonly FleetResult[];
}

const NAMES: Readonly<Record<FleetResult['inbox'], string>> = {
  redis: '`RedisDedupeStore`, client `redis`',
  ioredis: '`RedisDedupeStore`, client `ioredis`',
  postgres: '`PostgresDedupeStore`',
  'postgres transactional': '`TransactionalInbox`',
};

/** The machine that a run was made on. */
export function machine() {
  const processors = cpus();
  return {
    measuredOn: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: `${processors.length} x ${processors[0]?.model ?? 'unknown'}`,
  };
}

/** The section of the benchmarks' README. */
export function toMarkdown({ measuredOn, node, cpu, fleets }: StoresReport): string {
  const { events = 0, messages = 0 } = fleets[0] ?? {};
  return `## Webhook stores

\`npx tsx bench/webhooks-stores.ts\`; ${measuredOn}, Node ${node}, ${cpu}, local Redis and PostgreSQL.

Four receiver processes on one store, ${format(events)} events, each delivered 3 times (${format(messages)} messages), shuffled, 24 webhooks
of up to 8 events at once over loopback HTTP, each sent until a 2xx answers it. A handler takes up to 4 ms, its effect in the middle.
Killed receivers die by SIGKILL at random and are replaced; the lease is 4 s, and a webhook waits 0.5 s for events of others before it
answers 503. An "unexplained" repeat is one that no kill between handling and commit explains. For \`TransactionalInbox\` the rows that
handlers wrote are counted, for the stores the handlings.

| Store | Killed | Lost | Repeated | Unexplained | Seconds | Events/s | 200 | 503 | Cut off |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${fleets.map(fleetRow).join('\n')}
`;
}

function fleetRow(result: FleetResult): string {
  const { inbox, kills, lost, repeats, unexcused, seconds, events, answers } = result;
  const counts = [kills, lost, repeats, unexcused];
  const requests = [answers[200], answers[503], answers[0]].map((count) => format(count ?? 0));
  return `| ${NAMES[inbox]} | ${counts.join(' | ')} | ${seconds.toFixed(1)} | ${format(Math.round(events / seconds))} | ${requests.join(' | ')} |`;
}

function format(count: number): string {
  return count.toLocaleString('en-US');
}

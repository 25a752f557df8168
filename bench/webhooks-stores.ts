/**
 * Proves the webhook stores on real servers: fleets of receiver processes that are killed meanwhile.
 *
 * `npx tsx bench/webhooks-stores.ts` sends 3,000 events three times through every store and writes `results/webhooks-stores.json` and
 * its section of `README.md`; `--quick` sends 500 and only prints. Wants Redis on `REDIS_URL` and PostgreSQL on `DATABASE_URL`.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { writeReadmeSection } from './readme-section.ts';
import { type FleetCase, type FleetResult, runFleetCase } from './webhooks-stores/fleets.ts';
import { machine, toMarkdown } from './webhooks-stores/report.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const traffic = { events: values.quick ? 500 : 3_000, copies: 3, perWebhook: 8, concurrency: 24 };
const kills = values.quick ? 3 : 10;
const services = {
  redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  postgresUrl: process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test',
};
const cases: readonly FleetCase[] = [
  { inbox: 'redis', kills: 0 },
  { inbox: 'redis', kills },
  { inbox: 'ioredis', kills: 0 },
  { inbox: 'ioredis', kills },
  { inbox: 'postgres', kills: 0 },
  { inbox: 'postgres', kills },
  { inbox: 'postgres transactional', kills: 0 },
  { inbox: 'postgres transactional', kills },
];

const fleets: FleetResult[] = [];
for (const each of cases) {
  console.error(`${each.inbox}, ${each.kills} kills`);
  fleets.push(await runFleetCase(services, each, traffic));
}

const report = { ...machine(), fleets };
const section = toMarkdown(report);
console.log(section);
if (!values.quick) {
  writeFileSync(
    new URL('./results/webhooks-stores.json', import.meta.url),
    `${JSON.stringify(report, null, 2)}\n`,
  );
  writeReadmeSection('webhooks-stores', section);
}
const missed = fleets.filter(
  ({ lost, unexcused, ...rest }) => lost + unexcused > 0 || (rest.kills === 0 && rest.repeats > 0),
);
if (missed.length > 0) {
  console.error('A figure was missed; see the tables.');
  process.exitCode = 1;
}

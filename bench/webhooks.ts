/**
 * Measures webhooks in two parts: `receivers` (each store against a receiver written by hand) and `stores` (fleets of receivers
 * that are killed meanwhile).
 *
 * `npm run bench:webhooks` runs both and writes `results/webhooks-receivers.json` and `results/webhooks-stores.json`;
 * `-- receivers` runs one part. `-- --quick` takes fewer events and rounds, and only prints. The program needs Redis and
 * PostgreSQL, at `REDIS_URL` and `DATABASE_URL` or on this machine.
 */
import { parseArgs } from 'node:util';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { describeRun, writeResult } from './report.ts';
import { formatCount } from './statistics.ts';
import { measureReceivers } from './webhooks/receivers.ts';
import { measureStores } from './webhooks/stores.ts';

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';
const measuredOn = describeRun();
const isChosen = (part: string) => positionals.length === 0 || positionals.includes(part);

if (isChosen('receivers')) {
  const results = await measureReceivers(redisUrl, postgresUrl, values.quick);
  const rows = results.map(({ name, eventsPerWebhook, copies, must, ours, byHand, ratio }) => {
    const rates = [byHand, ours].map(formatCount);
    return [name, `${eventsPerWebhook}`, `${copies}`, ...rates, `${ratio.toFixed(2)}x`, `${must}x`];
  });
  console.log(markdownTable(['Store', 'Events', 'Copies', 'By hand', 'Ours', 'Ratio', 'Must reach'], rows));
  if (!values.quick) writeResult('webhooks-receivers.json', { measuredOn, results });
}

if (isChosen('stores')) {
  const fleets = await measureStores(redisUrl, postgresUrl, values.quick);
  const rows = fleets.map(({ inbox, kills, events, seconds, lost, repeats, unexcused, responses }) => [
    ...[inbox, `${kills}`, `${lost}`, `${repeats}`, `${unexcused}`, `${Math.round(events / seconds)}`],
    ...[200, 503, 0].map((status) => `${responses[status] ?? 0}`),
  ]);
  const head = ['Store', 'Killed', 'Lost', 'Repeated', 'Unexplained', 'Events/s', '200', '503', 'Cut off'];
  console.log(markdownTable(head, rows));
  if (!values.quick) writeResult('webhooks-stores.json', { measuredOn, fleets });
  const isBroken = fleets.some(({ lost, unexcused }) => lost + unexcused > 0);
  if (isBroken) process.exitCode = 1;
}

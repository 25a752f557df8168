/**
 * Measures webhooks in two parts: `receivers` (each store against a receiver written by hand) and `stores` (four receivers on each
 * store, and four written by hand).
 *
 * `npm run bench:webhooks` runs both and writes `results/webhooks-receivers.json` and `results/webhooks-stores.json`;
 * `-- receivers` runs one part. `-- --quick` takes fewer events and rounds, and only prints. The program needs Redis and
 * PostgreSQL, at `REDIS_URL` and `DATABASE_URL` or on this machine.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { readArguments } from './arguments.ts';
import { describeRun, writeResult } from './report.ts';
import { formatCount } from './statistics.ts';
import { measureReceivers } from './webhooks/receivers.ts';
import { measureStores } from './webhooks/stores.ts';

const { values, parts } = readArguments({
  command: 'bench:webhooks',
  summary: 'Measures webhooks against receivers that are written by hand. Needs Redis and PostgreSQL.',
  options: { quick: { help: 'Takes fewer events and rounds, and only prints.' } },
  parts: {
    receivers: 'One receiver with each store: events per second.',
    stores: 'Four receivers with each store: events per second.',
  },
});
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';
const measuredOn = describeRun();
const formatTarget = (must: number | null) => (must === null ? '' : `${must}x`);

if (parts.includes('receivers')) {
  const results = await measureReceivers(redisUrl, postgresUrl, values.quick);
  const rows = results.map(({ name, eventsPerWebhook, copies, must, ours, byHand, ratio }) => {
    const rates = [byHand, ours].map(formatCount);
    return [name, `${eventsPerWebhook}`, `${copies}`, ...rates, `${ratio.toFixed(2)}x`, formatTarget(must)];
  });
  console.log(markdownTable(['Store', 'Events', 'Copies', 'By hand', 'Ours', 'Ratio', 'Must reach'], rows));
  if (!values.quick) writeResult('webhooks-receivers.json', { measuredOn, results });
}

if (parts.includes('stores')) {
  const fleets = await measureStores(redisUrl, postgresUrl, values.quick);
  const rows = fleets.map(({ inbox, eventsPerWebhook, lost, repeats, events, seconds, ratio, must }) => {
    const counts = [eventsPerWebhook, lost, repeats, Math.round(events / seconds)];
    return [inbox, ...counts.map(String), ratio === null ? '1' : `${ratio.toFixed(2)}x`, formatTarget(must)];
  });
  const counts = ['Events per webhook', 'Lost', 'Repeated', 'Events/s'];
  console.log(markdownTable(['Store', ...counts, 'Ratio', 'Must reach'], rows));
  console.log('The ratio compares a store with the receiver by hand of the same database and webhooks.');
  if (!values.quick) writeResult('webhooks-stores.json', { measuredOn, fleets });
  if (fleets.some(({ lost, repeats }) => lost + repeats > 0)) process.exitCode = 1;
}

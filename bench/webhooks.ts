/**
 * Measures webhooks in two parts: `receivers` (each store against a receiver written by hand) and `stores` (fleets of receivers
 * that are killed meanwhile, and fleets written by hand).
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
import { isByHand, measureStores } from './webhooks/stores.ts';

const { values, parts } = readArguments({
  command: 'bench:webhooks',
  summary: 'Measures webhooks against receivers that are written by hand. Needs Redis and PostgreSQL.',
  options: { quick: { help: 'Takes fewer events and rounds, and only prints.' } },
  parts: {
    receivers: 'One receiver with each store: events per second.',
    stores:
      'Four receivers with each store, undisturbed and with kills: lost and repeated events, events per second.',
  },
});
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';
const measuredOn = describeRun();

if (parts.includes('receivers')) {
  const results = await measureReceivers(redisUrl, postgresUrl, values.quick);
  const rows = results.map(({ name, eventsPerWebhook, copies, must, ours, byHand, ratio }) => {
    const rates = [byHand, ours].map(formatCount);
    return [name, `${eventsPerWebhook}`, `${copies}`, ...rates, `${ratio.toFixed(2)}x`, `${must}x`];
  });
  console.log(markdownTable(['Store', 'Events', 'Copies', 'By hand', 'Ours', 'Ratio', 'Must reach'], rows));
  if (!values.quick) writeResult('webhooks-receivers.json', { measuredOn, results });
}

if (parts.includes('stores')) {
  const fleets = await measureStores(redisUrl, postgresUrl, values.quick);
  const rows = fleets.map(({ inbox, kills, events, seconds, ratio, lost, repeats, unexcused, responses }) => [
    ...[inbox, `${kills}`, `${lost}`, `${repeats}`, `${unexcused}`, `${Math.round(events / seconds)}`],
    ratio === null ? '1' : `${ratio.toFixed(2)}x`,
    ...[200, 503, 0].map((status) => `${responses[status] ?? 0}`),
  ]);
  const head = [
    'Store',
    'Killed',
    'Lost',
    'Repeated',
    'Unexplained',
    'Events/s',
    'Ratio',
    '200',
    '503',
    'Cut off',
  ];
  console.log(markdownTable(head, rows));
  console.log(
    'The ratio is the events per second, divided by the events per second of the nearest row "by hand" above.',
  );
  if (!values.quick) writeResult('webhooks-stores.json', { measuredOn, fleets });
  // A receiver by hand may lose the events that it had marked when it was killed.
  const isBroken = fleets.some(({ inbox, lost, unexcused }) => !isByHand(inbox) && lost + unexcused > 0);
  if (isBroken) process.exitCode = 1;
}

/**
 * Runs the whole package while something fails every seven seconds: a client that polls 2,000 trackers, four receivers with
 * every kind of inbox, and `RedisLimiter` among all five, on real HTTP, Redis and PostgreSQL. Then the program counts lost and
 * repeated events and leftover processes, and exits with 1 when a promise was broken.
 *
 * `npm run bench:soak` causes failures for 15 minutes and writes a table of `README.md`; a shorter run with `-- --minutes <number>`
 * only prints. The program needs Redis and PostgreSQL, at `REDIS_URL` and `DATABASE_URL` or on this machine.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { readArguments, refuse } from './arguments.ts';
import { describeRun, writeReadmeFigures } from './report.ts';
import { RECEIVERS, runSoak, type SoakResult } from './soak/run.ts';
import { LIMIT_PER_SECOND, TRACKERS } from './soak/service.ts';
import { INBOXES, TOTAL_TIMEOUT_MS } from './soak/task.ts';

/** A shorter run cannot tell whether memory grows, since V8 compiles for minutes. */
const WHOLE_MINUTES = 15;
const MAX_GROWTH_PERCENT = 5;
/** A `MemoryDedupeStore` needs about this much for each key that it remembers. */
const BYTES_PER_KEY = 260;
/** Within this time, processes continue without Redis and a stalled attempt times out, even on a busy machine. */
const MAX_SECONDS_WITHOUT_CALLS = 15;
/** On a busy machine, a timer may end a call this much later. */
const LATE_SECONDS = 2;

const { values } = readArguments({
  command: 'bench:soak',
  summary: 'Runs the whole package while something fails every seven seconds. Needs Redis and PostgreSQL.',
  options: {
    minutes: {
      value: '<number>',
      help: `How long it runs. Default: ${WHOLE_MINUTES}; a shorter run only prints.`,
    },
  },
});
const minutes = Number(values.minutes ?? WHOLE_MINUTES);
if (!(minutes > 0)) refuse(`Expected \`--minutes\` to be a number above 0, got "${values.minutes}"`);
const isWhole = minutes >= WHOLE_MINUTES;
// Exit on a signal; the other processes of the soak end when they lose the connection to this one.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const servers = {
  redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  postgresUrl: process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test',
};
const directory = await mkdtemp(join(tmpdir(), 'soak-'));
// Read the commit now, because it may change during the run.
const start = describeRun();
const result = await runSoak(minutes, servers, directory);
const promises = judge(result);
const { seconds, outages, counts, calls } = result;
const measuredOn = `${start}; ${(seconds / 60).toFixed(1)} minutes, ${TRACKERS} trackers polled with a limit of ${LIMIT_PER_SECOND} requests per second, ${RECEIVERS} receivers, ${outages.length} failures, ${counts.requests} requests to the service, ${calls} calls with results, ${result.events} events in ${counts.webhooks} webhooks`;
const rows = promises.map(({ promise, found, isKept }) => [promise, found, isKept ? 'yes' : 'NO']);
const figures = `${markdownTable(['Promise', 'Measured', 'Kept'], rows)}\n\nMeasured on ${measuredOn}.`;
console.log(figures);
if (isWhole) writeReadmeFigures('soak', figures);
const isKept = promises.every((each) => each.isKept);
if (isKept) {
  await rm(directory, { recursive: true });
} else {
  await writeFile(join(directory, 'outages.json'), JSON.stringify({ outages, flushes: result.flushes }));
  console.error(`A promise was broken; the journal of each process is in ${directory}`);
}
// Exit explicitly, because the sender still retries webhooks that no receiver accepts.
process.exit(isKept ? 0 : 1);

function judge(run: SoakResult) {
  const { inboxes, polling, refused, rejected, heaps } = run;
  const { redis, postgres, transactional } = inboxes;
  const all = [...INBOXES.map((name) => inboxes[name]), polling];
  const list = (field: 'lost' | 'unexcused') => all.map((each) => each[field]).join(', ');
  const rejections = rejected.map(({ name, times }) => `${times} ${name}`).join(', ') || 'none rejected';
  const { kill, flush } = redis.excused;
  return [
    {
      promise: 'no event is lost (Redis store, PostgreSQL store, exactly-once recipe, polling)',
      found: list('lost'),
      isKept: all.every(({ lost }) => lost === 0),
    },
    {
      promise: 'no event is handled twice without a known reason (the same four)',
      found: list('unexcused'),
      isKept: all.every(({ unexcused }) => unexcused === 0),
    },
    {
      promise:
        'for a known reason, an event can be handled twice with a store, but not with the exactly-once recipe',
      found: `Redis store: ${kill} after a kill, ${flush} after a FLUSHALL; PostgreSQL store: ${postgres.excused.kill} after a kill; exactly-once recipe: ${transactional.excused.kill}`,
      isKept: transactional.excused.kill === 0,
    },
    {
      promise:
        'no 429, except while the program makes calls fail, right after a FLUSHALL, or while the service counts requests more than 500 ms late',
      found: `other 429s: ${refused.unexcused}; after a FLUSHALL: ${refused.flush}; with late requests: ${refused.late}`,
      isKept: refused.unexcused === 0,
    },
    {
      promise: `every call ends within ${TOTAL_TIMEOUT_MS / 1_000} s with results or an error of this package`,
      found: `longest ${run.longestCallSeconds.toFixed(1)} s; ${rejections}`,
      isKept:
        run.longestCallSeconds < TOTAL_TIMEOUT_MS / 1_000 + LATE_SECONDS &&
        !rejected.some(({ name }) => name.startsWith('not of')),
    },
    {
      promise: `never ${MAX_SECONDS_WITHOUT_CALLS} s without results, whatever fails`,
      found: `longest ${run.longestGapSeconds.toFixed(1)} s`,
      isKept: run.longestGapSeconds < MAX_SECONDS_WITHOUT_CALLS,
    },
    {
      promise: 'every webhook is accepted in the end, no tracker is given up, no process breaks down',
      found: run.breakdowns.join('; ') || `${run.counts.notAccepted}, ${run.givenUp}, 0`,
      isKept: run.breakdowns.length === 0 && run.counts.notAccepted === 0 && run.givenUp === 0,
    },
    ...heaps.map(({ before, after }, index) => {
      const keys = after.keys - before.keys;
      const growth = ((after.objects - BYTES_PER_KEY * keys) / before.objects - 1) * 100;
      const sizes = (kind: 'objects' | 'code') =>
        [before, after].map((use) => (use[kind] / 1e6).toFixed(1)).join(' to ');
      return {
        promise: `the heap of ${index === 0 ? 'the client' : 'a receiver'} grows by at most ${MAX_GROWTH_PERCENT}% after the first fifth of the run${index === 0 ? '' : ', beyond the keys that it remembers'}`,
        found: `${sizes('objects')} MB, ${growth.toFixed(1)}%${index === 0 ? '' : ` beyond ${keys} keys`}; compiled code ${sizes('code')} MB${isWhole ? '' : ' (too short to tell)'}`,
        isKept: !isWhole || growth <= MAX_GROWTH_PERCENT,
      };
    }),
    {
      promise: 'once closed, every process ends by itself',
      found: `${run.notEnded} did not`,
      isKept: run.notEnded === 0,
    },
  ];
}

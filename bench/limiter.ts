/**
 * Holds this client's limiter against others, on a loopback service that enforces its limit in a process of its own.
 *
 * `npm run bench:limiter` runs everything three times, takes the medians, and writes `results/limiter.json`, the chart
 * `results/limiter.svg` and the figures in `README.md`. `npx tsx bench/limiter.ts --quick` makes fewer calls, runs once
 * and only prints; `--only <text>` keeps the cases whose name holds the text, and only prints as well.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Case, CHART_CASE, cases } from './limiter/cases.ts';
import { drawChart } from './limiter/chart.ts';
import { type Run, runCase } from './limiter/drive.ts';
import { comparisonTable, machine, priorityTable, queueTable, summarize } from './limiter/report.ts';
import { measurePriority, measureQueues } from './limiter/special-cases.ts';
import { writeReadmeSection } from './readme-section.ts';

/** The services share two cores without slowing each other down: a case makes at most 50 requests a second. */
const CASES_AT_ONCE = 2;

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const isComplete = !values.quick && values.only === undefined;
const rounds = values.quick ? 1 : 3;
const backgroundCalls = values.quick ? 60 : 300;
const chosen = cases
  .filter(({ name }) => name.includes(values.only ?? ''))
  .map((each): Case => (values.quick ? shortened(each) : each));

const runsOf = new Map<string, Run[][]>(chosen.map(({ name }) => [name, []]));
const queueRounds: Awaited<ReturnType<typeof measureQueues>>[] = [];
const priorityRuns: Awaited<ReturnType<typeof measurePriority>>[] = [];

for (let round = 1; round <= rounds; round += 1) {
  for (let index = 0; index < chosen.length; index += CASES_AT_ONCE) {
    const together = chosen.slice(index, index + CASES_AT_ONCE);
    console.error(`Round ${round} of ${rounds}: ${together.map(({ name }) => name).join('; ')}`);
    await Promise.all(together.map(async (each) => runsOf.get(each.name)?.push(await runCase(each))));
  }
  if (values.only !== undefined) continue;
  console.error(`Round ${round} of ${rounds}: priorities, then queues`);
  priorityRuns.push(await measurePriority(backgroundCalls));
  queueRounds.push(await measureQueues());
}

const reports = chosen.map((each) => summarize(each, runsOf.get(each.name) ?? []));
const place = machine();
const figures = [
  `Measured on ${place.measuredOn}: Node ${place.node}, ${place.cpu}, ${place.memoryGiB} GiB, ${place.system}; ` +
    `p-throttle ${place.packages['p-throttle']}, bottleneck ${place.packages.bottleneck}. ` +
    `${rounds === 1 ? 'One run.' : `Medians of ${rounds} runs.`}`,
  'Cells: answers of 429 / seconds / percent of the limit.',
  comparisonTable(reports),
  ...(values.only === undefined
    ? [priorityTable(priorityRuns, backgroundCalls), queueTable(queueRounds)]
    : []),
].join('\n\n');
console.log(figures);

if (isComplete) {
  const [chartRun = []] = runsOf.get(CHART_CASE) ?? [];
  writeResult('limiter.svg', drawChart(`200 requests, ${CHART_CASE}`, chartRun));
  const result = {
    command: 'npm run bench:limiter',
    machine: place,
    cases: reports,
    priorityRuns,
    queueRounds,
  };
  writeResult('limiter.json', `${JSON.stringify(result, rounded, 1)}\n`);
  writeReadmeSection('limiter figures', figures);
}

function shortened(each: Case): Case {
  const { limitChange } = each.server;
  const calls = Math.max(2 * (each.processes ?? 1) * each.server.limit, each.calls / 4);
  const server = limitChange
    ? { ...each.server, limitChange: { ...limitChange, afterRequests: calls / 2 } }
    : each.server;
  return { ...each, server, calls };
}

/** Nobody reads nanoseconds. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
}

function writeResult(name: string, content: string): void {
  writeFileSync(new URL(`./results/${name}`, import.meta.url), content);
}

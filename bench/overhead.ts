/**
 * Measures the CPU time of a call and the time of a cold start, and compares both with a call that is written by hand.
 *
 * `npm run bench:overhead` builds the package and writes `results/overhead.json` and a table of `README.md`; `-- --quick` takes
 * fewer rounds and only prints.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { readArguments } from './arguments.ts';
import { measureColdStarts } from './overhead/cold-start.ts';
import { BY_HAND, type CpuCase, measureCpu, OURS } from './overhead/cpu.ts';
import { forkServer } from './overhead/server.ts';
import { describeRun, writeReadmeFigures, writeResult } from './report.ts';

const { values } = readArguments({
  command: 'bench:overhead',
  summary:
    'Measures the CPU time of a call and the time of a cold start, and compares both with a call by hand.',
  options: { quick: { help: 'Takes fewer rounds, and only prints.' } },
});
const rounds = values.quick ? 3 : 25;
const measuredOn = describeRun();
const server = await forkServer();
const coldStarts = await measureColdStarts(server.origin, rounds);
const cpu = [await measureCpu(server.origin, 10, rounds), await measureCpu(server.origin, 200, rounds)];
server.stop();

const figures = [
  markdownTable(
    ['`results` call', ...(cpu[0]?.costs.map(({ contender }) => contender) ?? []), 'At most'],
    [formatCpu(cpu[0], 1.2), formatCpu(cpu[1], 1.1)],
  ),
  markdownTable(
    ['Cold start', 'Whole process', 'Ratio to the same by hand'],
    coldStarts.map(({ program, milliseconds, ratio }) => [
      ...[program, `${milliseconds.toFixed(0)} ms`, ratio === null ? '' : `${ratio.toFixed(2)}x`],
    ]),
  ),
  `Each ratio is to ${BY_HAND} in the same round: the CPU time of a call, or the time of a whole process. Measured on ${measuredOn}. Medians.`,
].join('\n\n');
console.log(figures);
if (!values.quick) {
  writeResult('overhead.json', { measuredOn, cpu, coldStarts });
  writeReadmeFigures('overhead', figures);
}

function formatCpu(cpuCase: CpuCase | undefined, maxRatio: number): string[] {
  if (!cpuCase) return [];
  const cells = cpuCase.costs.map(({ contender, microsecondsPerCall, ratio }) => {
    const time = `${microsecondsPerCall.toFixed(0)} µs`;
    return contender === BY_HAND ? time : `${time}, ${ratio.toFixed(2)}x`;
  });
  const ours = cpuCase.costs.find(({ contender }) => contender === OURS)?.ratio ?? Number.NaN;
  return [
    `${cpuCase.events} events`,
    ...cells,
    `${maxRatio.toFixed(2)}x: ${ours <= maxRatio ? 'kept' : 'MISSED'}`,
  ];
}

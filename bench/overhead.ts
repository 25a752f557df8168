/**
 * Measures the CPU time of a call and the time of a cold start, and compares both with a call that is written by hand.
 *
 * `npm run bench:overhead` builds the package and writes `results/overhead.json`; `-- --quick` takes fewer rounds and only prints.
 */
import { readArguments } from './arguments.ts';
import { measureColdStarts } from './overhead/cold-start.ts';
import { measureCpu } from './overhead/cpu.ts';
import { formatOverhead } from './overhead/figures.ts';
import { forkServer } from './overhead/server.ts';
import { describeRun, writeResult } from './report.ts';

const { values } = readArguments({
  command: 'bench:overhead',
  summary:
    'Measures the CPU time of a call and the time of a cold start, and compares both with a call by hand.',
  options: { quick: { help: 'Takes fewer rounds, and only prints.' } },
});
const coldRounds = values.quick ? 3 : 25;
const cpuRounds = values.quick ? 15 : 75;
const measuredOn = describeRun();
const server = await forkServer();
const coldStarts = await measureColdStarts(server.origin, coldRounds);
const cpu = [await measureCpu(server.origin, 10, cpuRounds), await measureCpu(server.origin, 200, cpuRounds)];
server.stop();

const result = { measuredOn, cpu, coldStarts };
console.log(formatOverhead(result));
if (!values.quick) writeResult('overhead.json', result);

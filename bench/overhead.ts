// What the package costs: CPU time of a call against one by hand, a cold import against zod's, packages and bytes installed.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { type ColdImport, measureColdImports } from './overhead/cold-import.ts';
import { BY_HAND, type CpuCase, measureCpu, SUBJECT } from './overhead/cpu.ts';
import { installPackage } from './overhead/package.ts';
import { writeReadmeSection } from './readme-section.ts';

function verdict(value: number, mustReach: number): string {
  return value <= mustReach ? 'reached' : 'missed';
}

/** What a call may cost at most against the one by hand, by the number of its events. */
const MOST_CPU: Readonly<Record<number, number>> = { 10: 1.4, 200: 1.2 };

function cpuRow({ events, costs }: CpuCase): string[] {
  const mustReach = MOST_CPU[events] ?? Number.NaN;
  const cells = costs.map(({ contender, microsecondsPerCall, ratio }) =>
    contender === BY_HAND
      ? `${microsecondsPerCall.toFixed(0)} µs`
      : `${microsecondsPerCall.toFixed(0)} µs, ${ratio.toFixed(2)}x`,
  );
  const ratio = costs.find(({ contender }) => contender === SUBJECT)?.ratio ?? Number.NaN;
  return [`${events} events`, ...cells, `<= ${mustReach.toFixed(2)}x: ${verdict(ratio, mustReach)}`];
}

const { app, unpackedBytes, companions } = await installPackage();
const imports = await measureColdImports(app);
await rm(app, { recursive: true, force: true });
const cpu = await measureCpu();

const importOf = (name: string): ColdImport => {
  const found = imports.find(({ contender }) => contender === name);
  if (found === undefined) throw new Error(`Expected a measurement of ${name}`);
  return found;
};
const ours = importOf('tracking-client (ESM)');
const zod = importOf('zod (ESM)');
const processRatio = ours.processMs / zod.processMs;
const importRatio = ours.importMs / zod.importMs;
const machine = `Node ${process.version.slice(1)}, ${cpus()[0]?.model.trim()}, ${cpus().length} cores`;

const section = [
  markdownTable(
    ['`results` call', ...(cpu[0]?.costs.map(({ contender }) => contender) ?? []), 'Must reach'],
    cpu.map(cpuRow),
  ),
  markdownTable(
    ['Cold import', 'whole process', 'import alone'],
    imports.map(({ contender, processMs, importMs }) => [
      contender,
      `${processMs.toFixed(0)} ms`,
      `${importMs.toFixed(1)} ms`,
    ]),
  ),
  markdownTable(
    ['Figure', 'Must reach', 'Measured'],
    [
      [
        'a process that imports `tracking-client`, against one that imports `zod`',
        '<= 1.6x',
        `${processRatio.toFixed(2)}x: ${verdict(processRatio, 1.6)}`,
      ],
      ['the same, the import alone', '<= 1.6x', `${importRatio.toFixed(2)}x: ${verdict(importRatio, 1.6)}`],
      [
        'packages installed with it',
        '<= 6',
        `${companions.length} (${companions.join(', ')}): ${verdict(companions.length, 6)}`,
      ],
      [
        'unpacked size',
        '<= 1,500 kB',
        `${(unpackedBytes / 1000).toFixed(0)} kB: ${verdict(unpackedBytes, 1_500_000)}`,
      ],
    ],
  ),
  `Measured with ${machine}. Medians.`,
].join('\n\n');
console.log(`${section}\n\nLoad of the machine before the end: ${loadavg()[0]?.toFixed(1)}`);

await mkdir(new URL('./results/', import.meta.url), { recursive: true });
const report = { machine, cpu, imports, companions, unpackedBytes };
await writeFile(new URL('./results/overhead.json', import.meta.url), `${JSON.stringify(report, null, 2)}\n`);
writeReadmeSection('overhead figures', section);

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from '../statistics.ts';

const ROUNDS = 25;

/** What a fresh process needs for an import. */
export interface ColdImport {
  readonly contender: string;
  /** From the start of the process to its end. */
  readonly processMs: number;
  /** The import alone. */
  readonly importMs: number;
}

const CONTENDERS: Readonly<Record<string, string>> = {
  nothing: '',
  'zod (ESM)': "await import('zod');",
  'tracking-client (ESM)': "await import('tracking-client');",
  'zod (CommonJS)': "require('zod');",
  'tracking-client (CommonJS)': "require('tracking-client');",
  'tracking-client/webhooks (ESM)': "await import('tracking-client/webhooks');",
};

const PROGRAM = (code: string) => `
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const startedAt = performance.now();
${code}
console.log(performance.now() - startedAt);
`;

/** Starts a process per import and round, all contenders taking turns; `app` is a folder where the package is installed. */
export async function measureColdImports(app: string): Promise<ColdImport[]> {
  const scratch = await mkdtemp(join(app, 'cold-'));
  const names = Object.keys(CONTENDERS);
  const samples = new Map(names.map((name) => [name, { process: [] as number[], import: [] as number[] }]));
  try {
    for (const [index, name] of names.entries())
      await writeFile(join(scratch, `${index}.mjs`), PROGRAM(CONTENDERS[name] ?? ''));
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const [index, name] of names.entries()) {
        const startedAt = performance.now();
        const { stdout } = spawnSync(process.execPath, [join(scratch, `${index}.mjs`)], { cwd: tmpdir() });
        const processMs = performance.now() - startedAt;
        // The first round reads the files into the memory of the system.
        if (round < 0) continue;
        samples.get(name)?.process.push(processMs);
        samples.get(name)?.import.push(Number(stdout));
      }
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return names.map((contender) => ({
    contender,
    processMs: median(samples.get(contender)?.process ?? []),
    importMs: median(samples.get(contender)?.import ?? []),
  }));
}

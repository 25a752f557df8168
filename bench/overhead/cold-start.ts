import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { findMedian } from '../statistics.ts';

export interface ColdStart {
  readonly program: string;
  readonly milliseconds: number;
  /** Median of the ratios to the program by hand in the same round; null if there is no such program. */
  readonly ratio: number | null;
}

/** Programs in this folder can import the build as `tracking-client`, because the folder lies inside the package. */
const FOLDER = fileURLToPath(new URL('../../.tmp/cold-start/', import.meta.url));

const CALL_BY_HAND = 'await createCall(process.argv[2])();';
const CALL_OURS =
  "await new TrackingClient({ baseUrl: process.argv[2], apiKey: 'key-of-the-bench' }).trackers.results('abc');";
const inFunction = (body: string) => `(async () => { ${body} })();`;

/** Each program imports, makes one call and ends; its extension selects the module system. */
const PROGRAMS = [
  { program: 'an empty file', file: 'empty.mjs', code: '' },
  {
    program: 'by hand, one call (ESM)',
    file: 'hand.mjs',
    code: `import { createCall } from './by-hand.mjs'; ${CALL_BY_HAND}`,
  },
  {
    program: 'tracking-client, one call (ESM)',
    file: 'ours.mjs',
    code: `import { TrackingClient } from 'tracking-client'; ${CALL_OURS}`,
    against: 'by hand, one call (ESM)',
  },
  {
    program: 'by hand, one call (CommonJS)',
    file: 'hand.cjs',
    code: `const { createCall } = require('./by-hand.cjs'); ${inFunction(CALL_BY_HAND)}`,
  },
  {
    program: 'tracking-client, one call (CommonJS)',
    file: 'ours.cjs',
    code: `const { TrackingClient } = require('tracking-client'); ${inFunction(CALL_OURS)}`,
    against: 'by hand, one call (CommonJS)',
  },
  {
    program: 'tracking-client/webhooks, the import alone (ESM)',
    file: 'webhooks.mjs',
    code: "import 'tracking-client/webhooks';",
  },
];

/** Starts every program once in each round, so that a slow moment of the machine affects all programs. */
export async function measureColdStarts(origin: string, rounds: number): Promise<ColdStart[]> {
  await mkdir(FOLDER, { recursive: true });
  const source = await readFile(new URL('./by-hand.ts', import.meta.url), 'utf8');
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ] as const) {
    const { code } = await transform(source, { loader: 'ts', format });
    await writeFile(join(FOLDER, `by-hand.${extension}`), code);
  }
  for (const { file, code } of PROGRAMS) await writeFile(join(FOLDER, file), code);

  const samples: Map<string, number>[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const sample = new Map<string, number>();
    for (const { program, file } of PROGRAMS) {
      const startedAt = performance.now();
      const { status, stderr } = spawnSync(process.execPath, [join(FOLDER, file), `${origin}/10`]);
      sample.set(program, performance.now() - startedAt);
      if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`);
    }
    // Skip the first round, because the system still reads the files from the disk.
    if (round >= 0) samples.push(sample);
  }
  return PROGRAMS.map(({ program, against }) => ({
    program,
    milliseconds: findMedian(samples, program),
    ratio: against === undefined ? null : findMedian(samples, program, against),
  }));
}

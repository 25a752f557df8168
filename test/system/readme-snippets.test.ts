// Every block of TypeScript in README.md and docs/: type-checked, and run as it stands.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import type { createClient } from 'redis';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { describeWithRedis } from '../integration/services.ts';
import { matchesPattern, type Snippet, snippets } from '../readme/support/documents.ts';
import { recipeFiles } from '../readme/support/recipes.ts';
import { runProgram } from '../readme/support/stage.ts';
import { complaintsAbout } from '../readme/support/type-check.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const all = snippets();
const programs = all.filter(({ isTest }) => !isTest);

/** A database of Redis that nothing else here uses, so a program may keep its default keys. */
const REDIS_DATABASE = 11;

// The real clients, recorded so that the test can close connections that a program leaves open.
const connections = vi.hoisted((): { destroy(): void }[] => []);
vi.mock('redis', async (importOriginal) => {
  const redis = await importOriginal<typeof import('redis')>();
  const createRemembered = (...options: Parameters<typeof createClient>) => {
    const client = redis.createClient(...options);
    connections.push(client);
    return client;
  };
  return { ...redis, createClient: createRemembered };
});

async function check(snippet: Snippet, environment?: Readonly<Record<string, string>>): Promise<void> {
  const { output, statuses, leftListening, leftTimers } = await runProgram(snippet, environment);
  const promised = snippet.output ?? '';
  expect(matchesPattern(output, promised), `Expected the output\n${promised}\ngot\n${output}`).toBe(true);
  expect(statuses.every((status) => status === 200)).toBe(true);
  expect(statuses.length > 0).toBe(snippet.staged.includes('webhooks'));
  expect({ leftListening, leftTimers }).toEqual({ leftListening: 0, leftTimers: 0 });
}

describe('a program of the documents', () => {
  const unaided = programs.filter(({ staged }) => !staged.includes('redis'));

  it.each(unaided)('$place → prints what its comments promise', async (snippet) => {
    await check(snippet);
  });

  it('a program that promises another output → the check fails', async () => {
    const [first] = unaided;
    await expect(check({ ...first, output: 'something else' } as Snippet)).rejects.toThrow('something else');
  });

  it('all programs → have a comment with their output', () => {
    expect(programs.filter(({ output }) => output === undefined).map(({ place }) => place)).toEqual([]);
  });
});

await describeWithRedis('a program of the documents with Redis', (url) => {
  it.each(programs.filter(({ staged }) => staged.includes('redis')))(
    '$place → prints what its comments promise',
    async (snippet) => {
      const database = new URL(`/${REDIS_DATABASE}`, url).href;
      const admin = new Redis(database);
      try {
        await check(snippet, { REDIS_URL: database });
        expect(await admin.keys('tracking-client:*')).not.toEqual([]);
      } finally {
        for (const connection of connections.splice(0)) connection.destroy();
        const keys = await admin.keys('tracking-client:*');
        if (keys.length > 0) await admin.del(...keys);
        admin.disconnect();
      }
    },
  );
});

describe('a test of the documents', () => {
  /** Runs the tests as an app would: with the built package, and nothing else of this repository. */
  const config = `
    import { defineConfig } from 'vitest/config';
    export default defineConfig({ root: import.meta.dirname, test: { include: ['*.test.ts'], isolate: false } });
  `;
  const tests = all.filter(({ isTest }) => isTest);
  const broken = (tests[0]?.code ?? '').replace("toBe('delivered')", "toBe('lost')");
  let statuses: ReadonlyMap<string, string> = new Map();

  // One run for all tests of the documents; each test below reads its own result.
  beforeAll(async () => {
    await mkdir(join(root, '.tmp'), { recursive: true });
    const folder = await mkdtemp(join(root, '.tmp', 'readme-'));
    const files = [
      ...tests.map(({ code }, index) => [`${index}.test.ts`, code] as const),
      ['broken.test.ts', broken] as const,
    ];
    for (const [name, code] of [['vitest.config.ts', config] as const, ...files])
      await writeFile(join(folder, name), code);
    const report = join(folder, 'report.json');
    const args = [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--config',
      join(folder, 'vitest.config.ts'),
    ];
    // A failed test makes the exit code 1; what failed is in the report.
    await promisify(execFile)(process.execPath, [...args, '--reporter=json', `--outputFile=${report}`], {
      cwd: folder,
    }).catch(() => {});
    // Written by vitest just now.
    const { testResults } = JSON.parse(await readFile(report, 'utf8')) as {
      testResults: { name: string; status: string }[];
    };
    statuses = new Map(testResults.map(({ name, status }) => [name.slice(folder.length + 1), status]));
    await rm(folder, { recursive: true });
  });

  it.each(tests.map(({ place }, index) => [place, index] as const))('%s → passes unchanged', (_, index) => {
    expect(statuses.get(`${index}.test.ts`)).toBe('passed');
  });

  it('a test with a wrong expectation → the check fails', () => {
    expect(statuses.get('broken.test.ts')).toBe('failed');
  });
});

describe('the types of the documents', () => {
  const misspelt = {
    place: 'a misspelt block:1',
    code: "import { TrackingClient } from 'tracking-client';\nnew TrackingClient({ baseURL: 'https://a.test' });\n",
  };
  let complaints: string[] = [];

  /** Recipes that need no framework; those of frameworks compile in test/consumers. */
  const recipes = [
    'accounts',
    'bullmq',
    'cron',
    'exactly-once',
    'from-sdk',
    'lambda',
    'pg-boss',
    'polling-worker',
    'postgres',
    'reconcile',
    'report',
    'web-server',
  ].flatMap((name) =>
    recipeFiles(name)
      .filter(({ path }) => path.endsWith('.ts'))
      .map(({ path, code }) => ({
        place: `docs/recipes/${name}.md, ${path}`,
        path: `${name}/${path}`,
        // Files for NestJS and Next.js import others without an ending.
        code: code.replace(/ from '(\.\/[\w-]+)'/g, " from '$1.ts'"),
      })),
  );

  // One compilation for all blocks, because the shared types take most of its time.
  beforeAll(() => {
    complaints = complaintsAbout([...all, ...recipes, misspelt]);
  });

  it('every block, and every recipe → compiles in a strict project', () => {
    const real = complaints.filter((complaint) => !complaint.startsWith(misspelt.place));
    expect(real, real.join('\n')).toEqual([]);
  });

  it('a block with a misspelt option → named with its line', () => {
    expect(complaints).toContainEqual(expect.stringMatching(/^a misspelt block:1 \+ 1 .*'baseURL'/));
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };

const FOLDER = new URL('../../.github/', import.meta.url);

const stepSchema = z.object({
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
const jobSchema = z.object({
  needs: z.string().optional(),
  uses: z.string().optional(),
  permissions: z.record(z.string(), z.string()).optional(),
  strategy: z.object({ matrix: z.object({ node: z.array(z.number()) }) }).optional(),
  services: z.record(z.string(), z.unknown()).optional(),
  steps: z.array(stepSchema).default([]),
});
const workflowSchema = z.object({
  on: z.record(z.string(), z.unknown()),
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(z.string(), jobSchema),
});

const read = (path: string): unknown => parse(readFileSync(new URL(path, FOLDER), 'utf8'), { strict: true });
const readWorkflow = (name: string) => workflowSchema.parse(read(`workflows/${name}`));
const readSteps = (name: string) => Object.values(readWorkflow(name).jobs).flatMap(({ steps }) => steps);
const readCommands = (name: string) => readSteps(name).flatMap(({ run }) => run ?? []);

describe.each(readdirSync(new URL('workflows/', FOLDER)))('%s', (name) => {
  test('its permissions → read access to the code, unless a job needs more', () => {
    expect(readWorkflow(name).permissions).toEqual({ contents: 'read' });
  });

  test('its actions → pinned to a major version', () => {
    const actions = readSteps(name).flatMap(({ uses }) => uses ?? []);
    expect(actions).not.toEqual([]);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
  });

  test('its npm scripts → exist in package.json', () => {
    const scripts = readCommands(name).flatMap((run) =>
      [...run.matchAll(/\bnpm (?:run )?([\w:-]+)/g)].flatMap(([, script = '']) => script),
    );
    const known = [...Object.keys(manifest.scripts), 'ci', 'pack', 'publish'];
    expect(scripts.filter((script) => !known.includes(script))).toEqual([]);
  });
});

test('the check → `npm ci` and `npm run check` with both services, on every major version that `engines` begins with', () => {
  const { strategy, services } = readWorkflow('check.yml').jobs['test'] ?? {};
  expect(readCommands('check.yml')).toEqual(expect.arrayContaining(['npm ci', 'npm run check']));
  expect(Object.keys(services ?? {}).sort()).toEqual(['postgres', 'redis']);
  const versions = [...manifest.engines.node.matchAll(/(\d+)\.\d+\.\d+/g)].map(([, major]) => Number(major));
  expect(strategy?.matrix.node).toEqual(expect.arrayContaining(versions));
});

test('a release → from a tag, after the check, and only if the tag equals the version', () => {
  const { on, jobs } = readWorkflow('publish.yml');
  expect(on).toEqual({ push: { tags: ['v*'] } });
  expect(jobs['check']?.uses).toBe('./.github/workflows/check.yml');
  expect(Object.keys(readWorkflow('check.yml').on)).toContain('workflow_call');
  expect(jobs['publish']?.needs).toBe('check');
  expect(readCommands('publish.yml')[0]).toMatch(/^test "\$GITHUB_REF_NAME" = "v/);
});

test('a release → audited, and published with provenance by the identity of the workflow, with no token and no registry named', () => {
  expect(readWorkflow('publish.yml').jobs['publish']?.permissions).toEqual({
    contents: 'read',
    'id-token': 'write',
  });
  expect(readCommands('publish.yml').slice(-2)).toEqual([
    'npx tsx scripts/audit-package.ts tracking-client-*.tgz',
    'npm publish tracking-client-*.tgz --provenance',
  ]);
  const { with: node } = readSteps('publish.yml').find(({ uses }) => uses?.includes('/setup-node@')) ?? {};
  expect(node).toEqual({ 'node-version': 24 });
  expect(readFileSync(new URL('workflows/publish.yml', FOLDER), 'utf8')).not.toMatch(
    /secrets|token:(?! write)|https:/i,
  );
});

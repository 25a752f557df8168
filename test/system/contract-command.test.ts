import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { bundled } from '../../scripts/support/bundled.ts';
import { runExample } from './run-example.ts';

const MOVED = fileURLToPath(new URL('../project/contract/openapi.yaml', import.meta.url));

describe('npm run contract', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'contract-'));
    // `info` lacks its version.
    const document = { openapi: '3.1.0', info: { title: 'Tracking' }, paths: {} };
    await writeFile(join(folder, 'nothing-new.json'), JSON.stringify(document));
    const old = { swagger: '2.0', info: { title: 'Tracking', version: '1.0.0' }, paths: {} };
    await writeFile(join(folder, 'swagger.json'), JSON.stringify(old));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const contract = async (...files: string[]) =>
    runExample([await bundled(manifest.scripts.contract.replace('tsx ', '')), ...files]);

  it.concurrent('a service that has moved → a table, the counts, exit code 1', async () => {
    const { code, stdout } = await contract(MOVED);
    expect(stdout).toMatch(/│ new +│ values of statusMilestone +│ .* │ +│ returned +│/);
    expect(stdout).toMatch(/│ changed +│ maxLength of trackingUrl +│ .* │ 1000 +│ 2000 +│/);
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^11 new, 6 changed, \d+ missing$/);
    expect(code).toBe(1);
  });

  it.concurrent('nothing new, in a file that breaks a rule of OpenAPI → a warning, exit code 0', async () => {
    const { code, stdout, stderr } = await contract(join(folder, 'nothing-new.json'));
    expect(stdout.trim().split('\n').at(-1)).toBe('0 new, 0 changed, 12 missing');
    expect([code, stderr]).toEqual([0, expect.stringContaining('breaks rules of OpenAPI')]);
  });

  it.concurrent.each<[what: string, files: (folder: string) => string[], message: string]>([
    ['a file of Swagger 2', (folder) => [join(folder, 'swagger.json')], 'to be a file of OpenAPI 3'],
    ['a file that does not exist', (folder) => [join(folder, 'nowhere.yaml')], 'Could not read'],
    ['no file', () => [], 'Expected one OpenAPI file, as in: npm run contract'],
  ])('%s → one message, exit code 2', async (_what, files, message) => {
    const { code, stdout, stderr } = await contract(...files(folder));
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
  });
});

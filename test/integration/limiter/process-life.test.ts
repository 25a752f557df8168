import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bundled } from '../../../scripts/support/bundled.ts';

async function outputOf(state: string): Promise<string[]> {
  const args = [await bundled('test/integration/limiter/limiter-program.ts'), state];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 25_000 });
  return stdout.trim().split('\n');
}

test('an endpoint paused for an hour and nobody waiting → the process ends by itself', async () => {
  expect(await outputOf('paused')).toEqual(['end of program']);
});

test('a call waiting for a token → the process lives until it is granted', async () => {
  expect(await outputOf('waiting')).toEqual(['end of program', 'granted']);
});

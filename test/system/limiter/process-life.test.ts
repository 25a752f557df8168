import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bundled } from '../../../scripts/support/bundled.ts';

test.each([
  ['an endpoint paused for an hour, without a waiting call', 'paused', 'end of program\n'],
  ['a call waiting for a token, until it is granted', 'waiting', 'end of program\ngranted\n'],
])('%s → the process ends then', async (_title, state, expected) => {
  const args = [await bundled('test/system/limiter/limiter-program.ts'), state];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 25_000 });
  expect(stdout).toBe(expected);
});

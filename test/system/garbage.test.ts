import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';

test('many calls with large results → a minor garbage collection frees the data', async () => {
  // In a process of its own, because the garbage of other tests would count.
  const program = await bundled('test/system/garbage-program.ts');
  const child = fork(program, { execArgv: ['--expose-gc'] });
  const [kilobytesPerCall] = await once(child, 'message');
  // The data of one call takes about 200 kB. A full collection during the measurement makes the number negative.
  expect(kilobytesPerCall).toBeGreaterThan(0);
  expect(kilobytesPerCall).toBeLessThan(50);
});

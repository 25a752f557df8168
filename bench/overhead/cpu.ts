import { fork } from 'node:child_process';
import { once } from 'node:events';
import { bundled } from '../../scripts/support/bundled.ts';
import { findMedian } from '../statistics.ts';
import type { CpuSamples, CpuTask } from './cpu-process.ts';
import { BY_HAND, CONTENDERS, type CpuCase } from './figures.ts';

const PACKAGE_URL = new URL('../../dist/index.js', import.meta.url).href;

/** Measures the CPU time of one `results` call in a new process, in rounds in which all contenders take turns. */
export async function measureCpu(origin: string, events: number, rounds: number): Promise<CpuCase> {
  const task: CpuTask = { packageUrl: PACKAGE_URL, baseUrl: `${origin}/${events}`, rounds };
  // Without `execArgv`, the child would load `tsx`, which makes calls slower.
  const options = { execArgv: [] };
  const child = fork(await bundled('bench/overhead/cpu-process.ts'), [JSON.stringify(task)], options);
  const exited = once(child, 'exit');
  // The child sends one message, its samples; if it exits first, the value is its exit code.
  const [message] = (await Promise.race([once(child, 'message'), exited])) as [CpuSamples | number];
  if (typeof message === 'number') throw new Error(`Expected samples, got exit code ${message}`);
  const samples = message.map((sample) => new Map(sample));
  const costs = CONTENDERS.map((contender) => ({
    contender,
    microsecondsPerCall: findMedian(samples, contender),
    ratio: findMedian(samples, contender, BY_HAND),
  }));
  return { events, costs };
}

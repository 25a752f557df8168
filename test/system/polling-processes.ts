import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import type { ReadyService, ServiceCounts } from './polling-service.ts';
import { startProgram } from './start-program.ts';

/** Starts a fake service and workers as processes of their own. */
export class PollingProcesses {
  readonly #running: ChildProcess[] = [];

  /** Starts a service with so many trackers, of which every fourth is stopped, and two events of each. */
  async startService(trackers: number, limit: number, latencyMs = 0) {
    const program = await bundled('test/system/polling-service.ts');
    const service = fork(program, [trackers, limit, latencyMs].map(String));
    this.#running.push(service);
    // The types of both messages are those that the program above checks with `satisfies`.
    const [{ url, apiKey, trackerIds }] = (await once(service, 'message')) as [ReadyService];
    return {
      trackerIds,
      env: { TRACKING_BASE_URL: url, TRACKING_API_KEY: apiKey },
      async count(): Promise<ServiceCounts> {
        service.send('count');
        const [counts] = (await once(service, 'message')) as [ServiceCounts];
        return counts;
      },
    };
  }

  /** Starts a program of a recipe. */
  async startWorker(folder: string, env: NodeJS.ProcessEnv, file: string, ...args: readonly string[]) {
    const worker = await startProgram(resolve(folder, file), args, env, folder);
    this.#running.push(worker.child);
    return worker;
  }

  killAll(): void {
    for (const child of this.#running.splice(0)) child.kill('SIGKILL');
  }
}

/**
 * Expects that an event was handled twice only if the killed worker was one of the two, and no more often than it had polls under way.
 *
 * @param workersOfEvents - for each event the workers that handled it
 */
export function expectRepeatsOfKillOnly(
  workersOfEvents: readonly (readonly string[])[],
  killed: string,
  concurrency: number,
): void {
  const twice = workersOfEvents.filter((workers) => workers.length > 1);
  for (const workers of twice) {
    expect(workers).toHaveLength(2);
    expect(workers).toContain(killed);
  }
  expect(twice.length).toBeLessThanOrEqual(concurrency);
}

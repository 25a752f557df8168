import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import type { ReadyService, ServiceCounts } from './polling-service.ts';

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
    const program = await bundled(resolve(folder, file));
    const options = { cwd: folder, env: { ...process.env, ...env } };
    const worker = spawn(process.execPath, [program, ...args], options);
    this.#running.push(worker);
    const lines: string[] = [];
    for (const output of [worker.stdout, worker.stderr])
      output.on('data', (text) => lines.push(...`${text}`.split('\n').filter((line) => line !== '')));
    return {
      /** What the program has printed. */
      lines,
      send: (signal: NodeJS.Signals) => worker.kill(signal),
      /** Sends a signal, and resolves to the exit code. */
      async end(signal: NodeJS.Signals): Promise<number | null> {
        worker.kill(signal);
        const [code] = await once(worker, 'close');
        return code;
      },
    };
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

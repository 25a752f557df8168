import { setTimeout as sleep } from 'node:timers/promises';
import { forkEnforcingServer, readLog } from '../../test/support/enforcing-server.ts';
import type { Case } from './cases.ts';
import { contenders } from './contenders.ts';

export interface Run {
  readonly contender: string;
  /** Number of responses with 429. */
  readonly refused: number;
  /** Seconds from the first call to the last response. */
  readonly seconds: number;
  /** Accepted requests per second, in percent of the limit. */
  readonly sharePercent: number;
  /** Number of calls that were never accepted. */
  readonly lost: number;
}

/** Contenders begin this far apart, so that their bursts do not meet in one event loop. */
const STAGGER_MS = 37;

/** Runs a case with every contender side by side, each on an account and a port of its own. */
export async function runCase({ server: options }: Case, calls: number): Promise<Run[]> {
  const server = await forkEnforcingServer({ ...options, ports: Object.keys(contenders).length });
  try {
    return await Promise.all(
      Object.entries(contenders).map(async ([contender, open], index): Promise<Run> => {
        const baseUrl = server.baseUrls[index] ?? '';
        const account = `account-${index}`;
        const call = open({ baseUrl, account, limit: options.limit });
        await sleep(index * STAGGER_MS);
        const startedAt = performance.now();
        // Make all calls at once, as a busy program does.
        const results = await Promise.allSettled(Array.from({ length: calls }, () => call()));
        const seconds = (performance.now() - startedAt) / 1_000;
        const log = await readLog(baseUrl, account);
        return {
          contender,
          refused: log.filter((entry) => !entry.accepted).length,
          seconds,
          sharePercent: (100 * calls) / (options.limit * seconds),
          lost: results.filter(({ status }) => status === 'rejected').length,
        };
      }),
    );
  } finally {
    await server.close();
  }
}

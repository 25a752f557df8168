import { setTimeout as sleep } from 'node:timers/promises';
import { TrackingClient } from '../../src/index.ts';
import { forkEnforcingServer, readLog } from './enforcing-server.ts';

const LIMIT = 10;

/** One interactive call among many background calls. */
export interface PriorityRun {
  /** Milliseconds from the interactive call to its request. */
  readonly waitedMs: number;
  readonly refused: number;
  /** Background requests per second, in percent of the limit. */
  readonly backgroundPercent: number;
}

/** Queues background calls, makes one interactive call halfway at a random moment, and waits for all. */
export async function measurePriority(backgroundCalls: number): Promise<PriorityRun> {
  const server = await forkEnforcingServer({ mode: 'sliding', limit: LIMIT });
  try {
    const [baseUrl = ''] = server.baseUrls;
    const client = new TrackingClient({ baseUrl, apiKey: 'account', logLevel: 'error' });
    const startedAt = performance.now();
    const background = Array.from({ length: backgroundCalls }, () =>
      client.trackers.get('tracker-1', { priority: 'background' }).then(() => {}),
    );
    await sleep((backgroundCalls / LIMIT / 2 + Math.random()) * 1_000);
    let sentAt = Number.NaN;
    const noteSent = () => {
      sentAt = performance.now();
    };
    const calledAt = performance.now();
    await client.withOptions({ hooks: { onRequest: noteSent } }).trackers.get('tracker-1');
    await Promise.all(background);
    const seconds = (performance.now() - startedAt) / 1_000;
    const log = await readLog(baseUrl, 'account');
    return {
      waitedMs: sentAt - calledAt,
      refused: log.filter((entry) => !entry.accepted).length,
      backgroundPercent: (100 * backgroundCalls) / (LIMIT * seconds),
    };
  } finally {
    await server.close();
  }
}

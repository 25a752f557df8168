import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TrackingClient } from '../../src/client.ts';
import { QUEUE_NAMES, type QueueCost } from './queue-cost.ts';
import { forkEnforcingServer, readLog } from './server-process.ts';

/** Measures every queue once, each in a fresh process. */
export async function measureQueues(): Promise<QueueCost[]> {
  const costs: QueueCost[] = [];
  for (const name of QUEUE_NAMES) costs.push(await measureQueue(name));
  return costs;
}

function measureQueue(name: string): Promise<QueueCost> {
  const script = fileURLToPath(new URL('./queue-cost.ts', import.meta.url));
  const child = fork(script, [name], { execArgv: [...process.execArgv, '--expose-gc'], stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    // Sound: the child's only message is its result.
    child.once('message', (cost) => resolve(cost as QueueCost));
    child.once('error', reject);
  });
}

/** One interactive call among many background calls. */
export interface PriorityRun {
  /** From the interactive call to its request. */
  readonly waitedMs: number;
  readonly refused: number;
  /** Background requests per second while the interactive call came and went, in percent of the limit. */
  readonly backgroundPercent: number;
}

const LIMIT = 10;

/** Queues background calls, makes one interactive call halfway at a random moment, and waits for all. */
export async function measurePriority(backgroundCalls: number): Promise<PriorityRun> {
  const server = await forkEnforcingServer({ mode: 'sliding', limit: LIMIT });
  try {
    const [baseUrl = ''] = server.baseUrls;
    const client = new TrackingClient({ baseUrl, apiKey: 'account' });
    const startedAt = performance.now();
    const background = Array.from({ length: backgroundCalls }, () =>
      client.trackers.get('tracker-1', { priority: 'background' }).then(() => {}),
    );
    await sleep((backgroundCalls / LIMIT / 2 + Math.random()) * 1_000);
    let sentAt = Number.NaN;
    const urgent = client.withOptions({
      hooks: {
        onRequest: () => {
          sentAt = performance.now();
        },
      },
    });
    const askedAt = performance.now();
    await urgent.trackers.get('tracker-1', { priority: 'interactive' });
    await Promise.all(background);
    const seconds = (performance.now() - startedAt) / 1_000;
    const log = await readLog(baseUrl, 'account');
    return {
      waitedMs: sentAt - askedAt,
      refused: log.filter((entry) => !entry.accepted).length,
      backgroundPercent: (100 * backgroundCalls) / (LIMIT * seconds),
    };
  } finally {
    await server.close();
  }
}

import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Case } from './cases.ts';
import { type Contender, contenders, type Target } from './contenders.ts';
import type { LogEntry } from './enforcing-server.ts';
import { forkEnforcingServer, readLog } from './server-process.ts';

/** One contender's run of one case. */
export interface Run {
  readonly contender: string;
  /** Answers of 429. */
  readonly refused: number;
  /** From the first call to the last answer. */
  readonly seconds: number;
  /** Accepted requests per second, in percent of the limit the service began with. */
  readonly sharePercent: number;
  /** Calls that were never accepted. */
  readonly lost: number;
  readonly log: readonly LogEntry[];
}

/** Calls that failed, and how long all of them took. */
export interface Outcome {
  readonly failed: number;
  readonly seconds: number;
}

/** A part of a run that a peer process takes over. */
export interface PeerTask {
  readonly contender: string;
  readonly target: Target;
  readonly calls: number;
}

/** Contenders begin one after the other, so that their bursts do not meet in one event loop. */
const STAGGER_MS = 37;

/** Makes all calls at once, as a busy program does, and waits for the last. */
export async function drive(contender: Contender, target: Target, calls: number): Promise<Outcome> {
  const call = contender.open(target);
  const startedAt = performance.now();
  const results = await Promise.allSettled(Array.from({ length: calls }, () => call()));
  return {
    failed: results.filter((result) => result.status === 'rejected').length,
    seconds: (performance.now() - startedAt) / 1_000,
  };
}

/** Runs a case with every contender side by side, each on an account and a port of its own. */
export async function runCase({ server: options, calls, processes = 1 }: Case): Promise<Run[]> {
  const server = await forkEnforcingServer({ ...options, ports: contenders.map(() => 0) });
  try {
    return await Promise.all(
      contenders.map(async (contender, index): Promise<Run> => {
        const baseUrl = server.baseUrls[index] ?? '';
        const target = { baseUrl, account: `account-${index}`, limit: options.limit };
        await sleep(index * STAGGER_MS);
        const outcomes =
          processes === 1
            ? [await drive(contender, target, calls)]
            : await drivePeers(processes, { contender: contender.name, target, calls: calls / processes });
        const log = await readLog(baseUrl, target.account);
        const seconds = Math.max(...outcomes.map((outcome) => outcome.seconds));
        return {
          contender: contender.name,
          refused: log.filter((entry) => !entry.accepted).length,
          seconds,
          sharePercent: (100 * calls) / (options.limit * seconds),
          lost: outcomes.reduce((sum, outcome) => sum + outcome.failed, 0),
          log,
        };
      }),
    );
  } finally {
    await server.close();
  }
}

/** Lets several processes do the same at the same moment. */
async function drivePeers(processes: number, task: PeerTask): Promise<Outcome[]> {
  const peers = Array.from({ length: processes }, () =>
    fork(fileURLToPath(new URL('./peer.ts', import.meta.url)), { stdio: 'inherit' }),
  );
  const nextMessage = (peer: (typeof peers)[number]) =>
    new Promise<unknown>((resolve) => peer.once('message', (message) => resolve(message)));
  await Promise.all(peers.map(nextMessage));
  return await Promise.all(
    peers.map(async (peer) => {
      const outcome = nextMessage(peer);
      peer.send(task);
      // Sound: a peer's second message is its outcome.
      return (await outcome) as Outcome;
    }),
  );
}

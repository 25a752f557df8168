import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { bundled } from '../../../scripts/support/bundled.ts';

/** The program of a process whose limit is shared through Redis. */
export const REDIS_LIMITER_PEER = 'test/support/fleet/redis-limiter-peer.ts';

export interface PeerTask {
  readonly baseUrl: string;
  readonly account: string;
  readonly limit: number;
  readonly redisUrl: string;
  /** Prefix of the fleet's keys in Redis. */
  readonly namespace: string;
  readonly processes: number;
  readonly calls: number;
}

export interface PeerOutcome {
  readonly failed: number;
  readonly seconds: number;
  /** The time at which each call ended, in milliseconds since the first call began. */
  readonly endedAt: readonly number[];
  /** Commands sent to Redis from the first call to the last. */
  readonly redisCommands: number;
  /** Records each time when the limiter lost or regained Redis. */
  readonly fallbacks: readonly ('unavailable' | 'recovered')[];
}

/** Starts processes that share one account and begin their tasks together. */
export class PeerFleet {
  readonly #peers: readonly { readonly process: ChildProcess; readonly exited: Promise<unknown> }[];
  readonly #killed = new Set<number>();

  private constructor(peers: readonly ChildProcess[]) {
    this.#peers = peers.map((process) => ({ process, exited: once(process, 'exit') }));
  }

  /**
   * Starts the processes and waits until each is ready.
   *
   * @param programs - the processes run these programs in turn. Default: `REDIS_LIMITER_PEER`
   */
  static async start(size: number, programs?: readonly string[]): Promise<PeerFleet> {
    const scripts = programs ?? [await bundled(REDIS_LIMITER_PEER)];
    const peers = Array.from({ length: size }, (_, index) =>
      fork(scripts[index % scripts.length] ?? '', { stdio: 'inherit' }),
    );
    await Promise.all(peers.map((peer) => once(peer, 'message')));
    return new PeerFleet(peers);
  }

  /** Gives every process its task; returns the outcomes of all processes that were not killed. */
  async run(createTask: (index: number) => PeerTask): Promise<PeerOutcome[]> {
    const outcomes = await Promise.all(
      this.#peers.map(async ({ process, exited }, index) => {
        const message = once(process, 'message');
        process.send(createTask(index));
        const first = await Promise.race([message, exited.then(() => undefined)]);
        // After `ready`, a peer sends nothing but its outcome.
        if (first) return first[0] as PeerOutcome;
        if (this.#killed.has(index)) return undefined;
        throw new Error('Expected every process to finish its task, got one that exited early');
      }),
    );
    return outcomes.filter((outcome) => outcome !== undefined);
  }

  kill(index: number): void {
    this.#killed.add(index);
    this.#peers[index]?.process.kill('SIGKILL');
  }

  /** Ends the remaining processes. */
  async stop(): Promise<void> {
    for (const { process } of this.#peers) if (process.connected) process.disconnect();
    await Promise.all(this.#peers.map(({ exited }) => exited));
  }
}

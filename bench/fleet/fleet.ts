import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bundled } from '../../scripts/support/bundled.ts';
import type { PeerMessage, PeerOutcome, PeerTask } from './task.ts';

/** Processes of one account that begin together. */
export class PeerFleet {
  readonly #peers: readonly { readonly process: ChildProcess; readonly exited: Promise<unknown> }[];
  readonly #killed = new Set<number>();

  private constructor(peers: readonly ChildProcess[]) {
    this.#peers = peers.map((process) => ({
      process,
      exited: new Promise((resolve) => process.once('exit', resolve)),
    }));
  }

  /** Starts the processes and waits until each is ready. */
  static async start(size: number): Promise<PeerFleet> {
    const script = await bundled(fileURLToPath(new URL('./peer.ts', import.meta.url)));
    const peers = Array.from({ length: size }, () => fork(script, { stdio: 'inherit' }));
    await Promise.all(peers.map(nextMessage));
    return new PeerFleet(peers);
  }

  /** Gives every process its task; a process that was killed has no outcome. */
  async run(taskOf: (index: number) => PeerTask): Promise<PeerOutcome[]> {
    const outcomes = await Promise.all(
      this.#peers.map(async ({ process, exited }, index) => {
        const outcome = nextMessage(process);
        process.send(taskOf(index));
        const message = await Promise.race([outcome, exited.then(() => undefined)]);
        if (typeof message === 'object') return message;
        if (this.#killed.has(index)) return undefined;
        throw new Error('Expected every process to end its task, got one that exited');
      }),
    );
    return outcomes.filter((outcome) => outcome !== undefined);
  }

  kill(index: number): void {
    this.#killed.add(index);
    this.#peers[index]?.process.kill('SIGKILL');
  }

  /** Ends whoever is left. */
  async stop(): Promise<void> {
    for (const { process } of this.#peers) if (process.connected) process.disconnect();
    await Promise.all(this.#peers.map(({ exited }) => exited));
  }
}

function nextMessage(peer: ChildProcess): Promise<PeerMessage> {
  return new Promise((resolve, reject) => {
    // Sound: a peer sends nothing else.
    peer.once('message', (message) => resolve(message as PeerMessage));
    peer.once('error', reject);
  });
}

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundled } from '../../../scripts/support/bundled.ts';
import type { Listening, ReceiverConfig } from './receiver-config.ts';
import { pickRandom } from './sender.ts';

/** The program of a receiver process. */
export const RECEIVER = 'test/system/receivers/receiver.ts';

/** The journal of one receiver process, in order. */
export interface Journal {
  readonly wasKilled: boolean;
  readonly lines: readonly { readonly what: 'handled' | 'committed'; readonly key: string }[];
}

interface Receiver {
  readonly name: string;
  readonly process: ChildProcess;
  readonly url: string;
}

/** Receiver processes on one store, some of which may be killed and replaced. */
export class Fleet {
  readonly #config: Omit<ReceiverConfig, 'journal'>;
  readonly #directory: string;
  readonly #programs: readonly string[];
  readonly #alive = new Map<string, Receiver>();
  readonly #killed = new Set<string>();
  readonly #starting = new Set<Promise<void>>();
  #count = 0;

  private constructor(
    config: Omit<ReceiverConfig, 'journal'>,
    directory: string,
    programs: readonly string[],
  ) {
    this.#config = config;
    this.#directory = directory;
    this.#programs = programs;
  }

  /**
   * Starts the receivers.
   *
   * @param programs - the receivers, and those that replace them, run these programs in turn. Default: `RECEIVER`
   */
  static async start(
    config: Omit<ReceiverConfig, 'journal'>,
    size: number,
    programs?: readonly string[],
  ): Promise<Fleet> {
    const directory = await mkdtemp(join(tmpdir(), 'receivers-'));
    const fleet = new Fleet(config, directory, programs ?? [await bundled(RECEIVER)]);
    await Promise.all(Array.from({ length: size }, () => fleet.#add()));
    return fleet;
  }

  /** Where the living receivers listen. */
  urls(): string[] {
    return [...this.#alive.values()].map(({ url }) => url);
  }

  get kills(): number {
    return this.#killed.size;
  }

  /** Kills a random receiver with SIGKILL, in whatever it is doing, and starts another in its place. */
  killOne(): void {
    const victim = pickRandom([...this.#alive.values()]);
    if (victim === undefined) return;
    this.#killed.add(victim.name);
    this.#alive.delete(victim.name);
    victim.process.kill('SIGKILL');
    const replacement = this.#add().finally(() => this.#starting.delete(replacement));
    this.#starting.add(replacement);
  }

  /** Ends all receivers and returns their journals. */
  async stop(): Promise<Journal[]> {
    await Promise.all(this.#starting);
    await Promise.all(
      [...this.#alive.values()].map(async ({ process }) => {
        const exit = once(process, 'exit');
        process.disconnect();
        await exit;
      }),
    );
    const names = await readdir(this.#directory);
    const journals = await Promise.all(names.map((name) => this.#readJournal(name)));
    await rm(this.#directory, { recursive: true });
    return journals;
  }

  async #add(): Promise<void> {
    this.#count += 1;
    const name = `receiver-${this.#count}`;
    const config: ReceiverConfig = { ...this.#config, journal: join(this.#directory, name) };
    const program = this.#programs[this.#count % this.#programs.length] ?? '';
    const child = fork(program, [JSON.stringify(config)]);
    const exited = once(child, 'exit').then(([code]) => {
      throw new Error(`Expected ${name} to listen, got exit code ${code}`);
    });
    const [message] = await Promise.race([once(child, 'message'), exited]);
    exited.catch(() => {});
    const { port } = message as Listening; // The receiver sends this one message.
    this.#alive.set(name, { name, process: child, url: `http://127.0.0.1:${port}/webhooks` });
  }

  async #readJournal(name: string): Promise<Journal> {
    const text = await readFile(join(this.#directory, name), 'utf8');
    const lines = text.split('\n').filter((line) => line !== '');
    return {
      wasKilled: this.#killed.has(name),
      lines: lines.map((line) => {
        const [what, ...rest] = line.split(' ');
        return { what: what === 'committed' ? what : 'handled', key: rest.join(' ') };
      }),
    };
  }
}

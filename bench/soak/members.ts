import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundled } from '../../scripts/support/bundled.ts';
import { type MemberMessage, type MemberTask, type Replies, steadyNow } from './task.ts';

/** A process may end late, because an idle connection of `fetch` closes after four seconds. */
const ENDS_WITHIN_MS = 8_000;

/** Controls a process of the soak from outside. */
export class Member {
  readonly journal: string;
  readonly #name: string;
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  /** The URL on which the process listens; empty for the poller. */
  url = '';
  /** Milliseconds since the epoch; undefined if the process was not killed. */
  killedAt: number | undefined;
  /** Describes how the process ended; undefined unless it ended unexpectedly. */
  breakdown: string | undefined;
  #mayExit = false;

  private constructor(script: string, task: MemberTask) {
    this.journal = task.journal;
    this.#name = task.name;
    this.#process = fork(script, [JSON.stringify(task)]);
    this.#exited = once(this.#process, 'exit').then(([code, signal]) => {
      if (!this.#mayExit) this.breakdown = `${this.#name} ended with ${code ?? signal}`;
    });
  }

  /** Starts a process and waits until it is ready. */
  static async start(
    task: Omit<MemberTask, 'journal'>,
    directory: string,
    onCalls: (count: number) => void,
  ): Promise<Member> {
    const script = await bundled('bench/soak/member.ts');
    const member = new Member(script, { ...task, journal: join(directory, task.name) });
    member.#process.on('message', (message: MemberMessage) => {
      if (message.kind === 'calls') onCalls(message.count);
    });
    const ready = await member.#next((message) => (message.kind === 'ready' ? message : undefined));
    if (!ready) throw new Error(member.breakdown ?? `${task.name} did not start`);
    member.url = ready.url;
    return member;
  }

  get isAlive(): boolean {
    return this.killedAt === undefined && this.breakdown === undefined;
  }

  /** Sends a command and returns the reply, or undefined if the process is gone. */
  async ask<Kind extends keyof Replies>(command: Kind, argument = 0): Promise<Replies[Kind] | undefined> {
    if (!this.#process.connected) return undefined;
    this.#process.send({ command, argument }, () => {});
    return await this.#next((message) =>
      // A process replies to each command with the type that `Replies` has for it.
      message.kind === 'reply' && message.command === command ? (message.value as Replies[Kind]) : undefined,
    );
  }

  async kill(): Promise<void> {
    this.killedAt = steadyNow();
    this.#mayExit = true;
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  /** Lets the process close everything; returns its report, and whether it then ended by itself. */
  async finish(): Promise<{ readonly calls: Replies['finish'] | undefined; readonly hasEnded: boolean }> {
    this.#mayExit = this.#process.connected;
    const calls = await this.ask('finish');
    const hasEnded = await Promise.race([
      this.#exited.then(() => true),
      sleep(ENDS_WITHIN_MS, false, { ref: false }),
    ]);
    if (!hasEnded) await this.kill();
    return { calls, hasEnded };
  }

  /** Waits for the first message that `pick` accepts; returns undefined if the process ends first. */
  #next<Value>(pick: (message: MemberMessage) => Value | undefined): Promise<Value | undefined> {
    return new Promise((resolve) => {
      const listen = (message: MemberMessage) => {
        const value = pick(message);
        if (value === undefined) return;
        this.#process.off('message', listen);
        resolve(value);
      };
      this.#process.on('message', listen);
      void this.#exited.then(() => resolve(undefined));
    });
  }
}

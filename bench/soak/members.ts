import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, type MemberMessage, type MemberTask, steadyNow } from './messages.ts';

type Answer<Kind extends MemberMessage['kind']> = Extract<MemberMessage, { kind: Kind }>;

/** A process of the soak, as the soak sees it. */
export class Member {
  readonly name: string;
  readonly journal: string;
  /** Where it listens; empty for one that does not. */
  url = '';
  /** When, in milliseconds since the epoch; undefined for one that was not. */
  killedAt: number | undefined;
  /** What it ended with though nobody had asked it to. */
  brokeDown: string | undefined;
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  #mayExit = false;

  private constructor(script: string, task: MemberTask) {
    this.name = task.name;
    this.journal = task.journal;
    const file = fileURLToPath(new URL(script, import.meta.url));
    this.#process = fork(file, [JSON.stringify(task)], { execArgv: ['--import', 'tsx'] });
    this.#exited = once(this.#process, 'exit').then(([code, signal]) => {
      if (!this.#mayExit) this.brokeDown = `${this.name} ended with ${code ?? signal}`;
    });
  }

  /** Starts a process and waits until it is ready. */
  static async start(
    script: './poller.ts' | './receiver.ts',
    task: Omit<MemberTask, 'journal'>,
    directory: string,
    onTick: (counts: Answer<'tick'>['counts']) => void,
  ): Promise<Member> {
    const member = new Member(script, { ...task, journal: join(directory, task.name) });
    member.#process.on('message', (message: MemberMessage) => {
      if (message.kind === 'tick') onTick(message.counts);
    });
    member.url = (await member.#next('ready'))?.url ?? '';
    if (member.brokeDown !== undefined) throw new Error(member.brokeDown);
    return member;
  }

  /** Asks for something; undefined when the process is gone. */
  async ask<Kind extends MemberMessage['kind']>(
    command: Command,
    kind: Kind,
  ): Promise<Answer<Kind> | undefined> {
    if (!this.#process.connected) return undefined;
    this.#process.send(command, () => {});
    return this.#next(kind);
  }

  async kill(): Promise<void> {
    this.killedAt = steadyNow();
    this.#mayExit = true;
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  /** Lets it close everything; tells what was left, and whether that still kept it alive two seconds later. */
  async finish(): Promise<(Answer<'finished'> & { readonly endedByItself: boolean }) | undefined> {
    this.#mayExit = this.#process.connected;
    const finished = await this.ask({ kind: 'finish' }, 'finished');
    const timeout = AbortSignal.timeout(2_000);
    const late = once(timeout, 'abort').then(() => false);
    const endedByItself = await Promise.race([this.#exited.then(() => true), late]);
    if (!endedByItself) await this.kill();
    return finished && { ...finished, endedByItself };
  }

  #next<Kind extends MemberMessage['kind']>(kind: Kind): Promise<Answer<Kind> | undefined> {
    return new Promise((resolve) => {
      const listen = (message: MemberMessage) => {
        if (message.kind !== kind) return;
        this.#process.off('message', listen);
        // The check above is what the type says.
        resolve(message as Answer<Kind>);
      };
      this.#process.on('message', listen);
      void this.#exited.then(() => resolve(undefined));
    });
  }
}

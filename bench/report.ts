import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** A figure of `results/scale.json`, in words. */
export interface Figure {
  readonly name: string;
  /** Absent if the figure only serves as information. */
  readonly target?: string;
  readonly isReached?: boolean;
  /** The measured value. */
  readonly found: string;
}

/** Names the date, the runtime, the processor, the commit, and the versions of the other libraries. */
export function describeRun(...libraries: readonly string[]): string {
  const versions = libraries.map((name) => {
    const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
    const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
    return `${name} ${version}`;
  });
  const date = new Date().toISOString().slice(0, 10);
  const cpu = `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}`;
  return [date, `Node ${process.version.slice(1)}`, cpu, describeCommit(), ...versions].join(', ');
}

function describeCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  // Ignore changed files in `results/`: a program that ran before may have written them, and they change no code.
  const isChanged = git('status', '--porcelain', '--', 'src', 'bench/*.ts', 'package-lock.json') !== '';
  return `commit ${git('rev-parse', '--short', 'HEAD')}${isChanged ? ' with changes' : ''}`;
}

/** Writes a file of `results/`, with each case on a line of its own, so that a diff shows what changed. */
export function writeResult(name: string, result: Readonly<Record<string, unknown>>): void {
  const fields = Object.entries(result).map(([key, value]) => {
    const lines = Array.isArray(value) ? value.map((item) => `\n    ${toJson(item)}`) : undefined;
    return `  ${JSON.stringify(key)}: ${lines ? `[${lines.join(',')}\n  ]` : toJson(value)}`;
  });
  writeFileSync(new URL(`./results/${name}`, import.meta.url), `{\n${fields.join(',\n')}\n}\n`);
}

/** Rounds a number as the files of `results/` do. */
export function roundResult(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, part) => (typeof part === 'number' ? roundResult(part) : part));
}

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseFlags } from '../cli/make-terminal.ts';
import { ALL_DOCUMENTS, parseMarkdown, readDocument } from './support/documents.ts';

const ROOT = new URL('../../', import.meta.url);

// npm writes this file, so its shape needs no check.
const { scripts } = JSON.parse(readDocument('package.json')) as {
  scripts: Record<string, string>;
};

/** Every command of a document, from its shell blocks and from code in its text. */
function parseCommands(text: string): string[] {
  const { blocks, prose } = parseMarkdown(text);
  const shell = blocks.filter(({ language }) => language === 'sh').flatMap(({ code }) => code.split('\n'));
  const inline = [...prose.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => code.replaceAll('\n', ' '));
  return [...shell, ...inline]
    .flatMap((line) => line.replace(/#.*/, '').split('&&'))
    .map((command) => command.trim())
    .filter((command) => /^(npm|npx) /.test(command));
}

/** Returns why a command cannot be run unchanged; undefined if it can. */
function findComplaint(command: string): string | undefined {
  const [program, name = '', ...rest] = command.split(/\s+/);
  if (program === 'npm') {
    if (['ci', 'install', 'audit', 'pack'].includes(name)) return undefined;
    const script = name === 'run' ? (rest[0] ?? '') : name;
    return script in scripts ? undefined : `${command}: package.json has no script "${script}"`;
  }
  if (name === 'tsx')
    return existsSync(new URL(rest[0] ?? '', ROOT)) ? undefined : `${command}: no such file`;
  if (name !== 'tracking-client') return `${command}: nobody checks this command`;
  try {
    parseFlags(rest);
    return undefined;
  } catch (error) {
    return `${command}: ${error}`;
  }
}

describe('the commands of', () => {
  it.each(ALL_DOCUMENTS)('%s → can be run unchanged', (path) => {
    const commands = parseCommands(readDocument(path));
    const complaints = commands.flatMap((command) => findComplaint(command) ?? []);
    expect(complaints, complaints.join('\n')).toEqual([]);
  });

  it.each([
    ['npm run nothing', 'package.json has no script "nothing"'],
    ['npx tsx bench/nothing.ts', 'no such file'],
    ['npx tracking-client fake --speed 0', 'Expected `--speed` to be'],
    ['npx something', 'nobody checks'],
  ])('a document with the command `%s` → a complaint that names the reason', (command, complaint) => {
    const [found = ''] = parseCommands(`\`\`\`sh\n${command} # a comment\n\`\`\``);
    expect(findComplaint(found)).toContain(complaint);
  });
});

import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { IS_PUBLISHED } from '../../scripts/support/published.ts';
import { createProgram } from '../../src/cli/program.ts';
import { makeTerminal, parseFlags } from '../cli/make-terminal.ts';
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
  const [program, name = '', ...rest] = command.replace(' --no-install', '').split(/\s+/);
  if (program === 'npm') {
    if (['ci', 'install', 'audit', 'pack', 'ls'].includes(name)) return undefined;
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

/** The commands in the table of docs/command.md, without `npx --no-install tracking-client`. */
function listCommands(): string[] {
  const [, table = ''] = readDocument('docs/command.md').split('\n| Command | What it does |\n');
  return [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([^`]+)` \|/gm)].map(([, line = '']) => line);
}

describe('the table of commands', () => {
  it('its first words → the commands of the program', () => {
    const { commands } = createProgram(makeTerminal().terminal);
    expect(listCommands().map((line) => line.split(' ')[0])).toEqual(
      commands.map((command) => command.name()),
    );
  });

  it.each(listCommands())('`%s` → can be run unchanged', (line) => {
    expect(() => parseFlags(line.split(' '))).not.toThrow();
  });
});

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

/** A command that fetches the package from a registry if it is not installed. */
const FETCHES =
  /\b(?:npx|npm (?:exec|x|init|i|install|add)|pnpm (?:dlx|exec|add|i|install)|pnpx|yarn (?:dlx|add)|bunx|bun (?:x|add))(?: -[-\w]+(?:=\S+)?)* tracking-client(?![\w./-])/g;

function findFetches(text: string): string[] {
  const found = text.match(FETCHES) ?? [];
  return found.filter((command) => !/ (?:--no-install|--no) /.test(command));
}

/** The files whose text a user reads: documents, recipes, examples, and the sources of help and messages. */
const TEXTS = ['docs', 'examples', 'src', 'bench'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:md|m?[jt]sx?|html|json|ya?ml|sql|sh)$/.test(name) && !name.startsWith('api/'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
);

describe.skipIf(IS_PUBLISHED)('the package is on no registry', () => {
  it('documents, recipes, examples, help and messages → no command fetches what has its name there', () => {
    const paths = [...new Set([...ALL_DOCUMENTS, ...TEXTS])];
    const found = paths.flatMap((path) =>
      findFetches(readDocument(path)).map((command) => `${path}: ${command}`),
    );
    expect(found).toEqual([]);
  });
});

it.each([
  'npx tracking-client fake',
  '$ npx tracking-client show RR123456785CN',
  'npx -y tracking-client',
  'npx --yes tracking-client',
  'npx --package=tracking-client tracking-client',
  'npm exec tracking-client -- fake',
  'npm install tracking-client',
  'npm i -D tracking-client',
  'pnpm dlx tracking-client',
  'yarn add tracking-client',
  'bunx tracking-client',
])('a text with `%s` → found', (text) => {
  expect(findFetches(`Run \`${text}\`.`)).toHaveLength(1);
});

it.each([
  'npx --no-install tracking-client fake',
  'npx --no tracking-client --version',
  'npm install ../tracking-client/tracking-client-0.1.0.tgz',
  'npm install tracking-client-0.1.0.tgz',
  'The command `tracking-client` tracks shipments',
])('a text with `%s` → nothing found', (text) => {
  expect(findFetches(text)).toEqual([]);
});

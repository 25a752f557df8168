import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Section {
  readonly before: string;
  readonly content: string;
  readonly after: string;
}

function split(file: URL, name: string): Section | undefined {
  const text = readFileSync(file, 'utf8');
  const begin = `<!-- ${name}: written by the program -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(`<!-- end of ${name} -->`);
  if (from === -1 || to < from) return undefined;
  const start = from + begin.length;
  return { before: text.slice(0, start), content: text.slice(start, to), after: text.slice(to) };
}

/** What stands between the two marks of a section in a Markdown file; undefined when the file has no such marks. */
export function readSection(file: URL, name: string): string | undefined {
  return split(file, name)?.content.trim();
}

/**
 * Replaces what stands between the two marks of a section in a Markdown file, so that nobody copies a figure by hand.
 *
 * @throws Error when the file does not hold the two marks
 */
export function writeSection(file: URL, name: string, content: string): void {
  const section = split(file, name);
  if (section === undefined)
    throw new Error(`Expected ${basename(fileURLToPath(file))} to hold the two marks of "${name}"`);
  writeFileSync(file, `${section.before}\n\n${content.trim()}\n\n${section.after}`);
}

import { readFileSync, writeFileSync } from 'node:fs';

/** Replaces what stands between the two marks of a section in `README.md`, so that nobody copies a figure by hand. */
export function writeReadmeSection(name: string, content: string): void {
  const file = new URL('./README.md', import.meta.url);
  const readme = readFileSync(file, 'utf8');
  const begin = `<!-- ${name}: written by the program -->`;
  const end = `<!-- end of ${name} -->`;
  const from = readme.indexOf(begin);
  const to = readme.indexOf(end);
  if (from === -1 || to < from) throw new Error(`Expected README.md to hold the two marks of ${name}`);
  writeFileSync(file, `${readme.slice(0, from + begin.length)}\n\n${content.trim()}\n\n${readme.slice(to)}`);
}

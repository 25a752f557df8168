import { readFileSync, writeFileSync } from 'node:fs';

const README = new URL('./README.md', import.meta.url);

/**
 * Puts what a program measured between its two marks in `bench/README.md`, so that nobody copies a figure by hand.
 *
 * @throws Error when the file does not hold the two marks
 */
export function writeReadmeSection(name: string, content: string): void {
  const [begin, end] = [`<!-- ${name}: written by the program -->`, `<!-- end of ${name} -->`];
  const text = readFileSync(README, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from)
    throw new Error(`Expected bench/README.md to hold the two marks of "${name}"`);
  writeFileSync(README, `${text.slice(0, from)}${begin}\n\n${content.trim()}\n\n${text.slice(to)}`);
}

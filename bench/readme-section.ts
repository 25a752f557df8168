import { writeSection } from '../scripts/support/marked-section.ts';

/** Puts what a program measured between its two marks in `bench/README.md`. */
export function writeReadmeSection(name: string, content: string): void {
  writeSection(new URL('./README.md', import.meta.url), name, content);
}

import { readFileSync } from 'node:fs';

/** The README of this repository. */
export const README = new URL('../../../README.md', import.meta.url);

/** A fenced block. */
export interface Block {
  /** Its section and its place among the section's blocks of its language, from 1: `quickstart 1`. */
  readonly id: string;
  readonly language: string;
  readonly code: string;
  /** The line of the README that its first line is. */
  readonly line: number;
}

/** Text in the parts that a reader sees apart: headings, fenced blocks, and the lines between. */
export interface Markdown {
  readonly blocks: readonly Block[];
  readonly headings: readonly string[];
  /** Everything outside fenced blocks. */
  readonly prose: string;
}

/** Takes a Markdown text apart. */
export function parseMarkdown(text: string): Markdown {
  const blocks: Block[] = [];
  const headings: string[] = [];
  const prose: string[] = [];
  let open: { language: string; lines: string[]; line: number } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (open !== undefined && fence === null) open.lines.push(line);
    else if (open !== undefined) {
      const { language, lines } = open;
      const section = anchorOf(headings.at(-1) ?? '');
      const place = blocks.filter(
        (block) => block.language === language && block.id.startsWith(`${section} `),
      );
      blocks.push({
        id: `${section} ${place.length + 1}`,
        language,
        code: `${lines.join('\n')}\n`,
        line: open.line,
      });
      open = undefined;
    } else if (fence !== null) open = { language: fence[1] ?? '', lines: [], line: index + 2 };
    else {
      const [, heading] = /^#{1,6} (.+)$/.exec(line) ?? [];
      if (heading !== undefined) headings.push(heading);
      prose.push(line);
    }
  }
  if (open !== undefined)
    throw new Error(`Expected the block of line ${open.line - 1} to be closed, got the end`);
  return { blocks, headings, prose: prose.join('\n') };
}

/** The README, taken apart. */
export function readReadme(): Markdown {
  return parseMarkdown(readFileSync(README, 'utf8'));
}

/** The name under which a heading can be linked to. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The text of one section, subsections included. */
export function sectionOf(markdown: string, heading: string): string {
  const [, rest] = markdown.split(`\n## ${heading}\n`);
  if (rest === undefined) throw new Error(`Expected README.md to have the section "${heading}", got none`);
  return rest.split('\n## ')[0] ?? '';
}

/** Blocks of TypeScript that are programs, and those that are tests. */
export function typeScriptBlocks({ blocks }: Markdown): {
  readonly programs: readonly Block[];
  readonly tests: readonly Block[];
} {
  const all = blocks.filter(({ language }) => language === 'ts');
  const isTest = ({ code }: Block) => code.includes("from 'vitest'");
  return { programs: all.filter((block) => !isTest(block)), tests: all.filter(isTest) };
}

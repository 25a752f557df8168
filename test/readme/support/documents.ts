import { readdirSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../../', import.meta.url);

/** The documents for users: the README, and the pages it links to. */
export const USER_DOCUMENTS = [
  'README.md',
  ...readdirSync(new URL('docs/', ROOT)).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
];

/** Whole programs of several files; see `recipes.ts`. */
const RECIPES = readdirSync(new URL('docs/recipes/', ROOT)).flatMap((name) =>
  name.endsWith('.md') ? [`docs/recipes/${name}`] : [],
);

/** Every document of the repository that links or names commands. */
export const ALL_DOCUMENTS = [
  ...USER_DOCUMENTS,
  ...RECIPES,
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'bench/README.md',
];

/** A fenced block. */
export interface Block {
  readonly language: string;
  readonly code: string;
  /** Number of the block's first line in the document. */
  readonly line: number;
  /** The text of the mark above the block, `<!-- staged: … -->`, which names what a test provides before it runs the block. */
  readonly staged: string;
}

/** The parts of a Markdown text: headings, fenced blocks, and everything between. */
export interface Markdown {
  readonly blocks: readonly Block[];
  readonly headings: readonly string[];
  /** Everything outside fenced blocks. */
  readonly prose: string;
}

/** The text of a document of this repository. */
export function readDocument(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** Takes a Markdown text apart. */
export function parseMarkdown(text: string): Markdown {
  const fences = /(?:<!-- staged: (.+) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm;
  const blocks = [...text.matchAll(fences)].map(
    ({ 0: whole, 1: staged = '', 2: language = '', 3: code = '', index }) => {
      const fence = index + whole.indexOf('```');
      return { language, code, staged, line: text.slice(0, fence).split('\n').length + 1 };
    },
  );
  const prose = text.replace(fences, '');
  const headings = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading);
  return { blocks, headings, prose };
}

/** The name under which a heading can be linked to. */
export function buildAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Compares a text with a pattern in which `…` stands for anything, also for several lines. */
export function matchesPattern(text: string, pattern: string): boolean {
  const parts = pattern.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`).test(text);
}

/** A block of TypeScript with its place. */
export interface Snippet extends Block {
  /** For example `README.md:41`. */
  readonly place: string;
  /** True for a test of vitest; the others are programs. */
  readonly isTest: boolean;
  /** The output that a program's last comment promises; undefined without one. */
  readonly output: string | undefined;
}

/** Every block of TypeScript that users read. */
export function snippets(): Snippet[] {
  return USER_DOCUMENTS.flatMap((path) =>
    parseMarkdown(readDocument(path))
      .blocks.filter(({ language }) => language === 'ts')
      .map((block) => {
        const [, comment] = block.code.split('// Output:\n');
        return {
          ...block,
          place: `${path}:${block.line}`,
          isTest: block.code.includes("from 'vitest'"),
          output: comment?.replace(/^\/\/ ?/gm, '').trimEnd(),
        };
      }),
  );
}

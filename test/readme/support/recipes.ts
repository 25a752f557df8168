import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseMarkdown, readDocument } from './documents.ts';

/** A file of a recipe, which readers copy. */
export interface RecipeFile {
  /** Relative to the reader's project. */
  readonly path: string;
  readonly code: string;
}

/** The path in the first line of a file, which is a comment; undefined without one. */
function findPath(code: string): string | undefined {
  return /^(?:\/\/|--|#) ([\w./[\]-]+\.\w+)\n/.exec(code)?.[1];
}

/**
 * The files of a page of `docs/recipes/`, whose first line is a comment with their path: its blocks, and the files of that folder
 * which the page links, as in "[page.js](page.js)". The page may also borrow files of another page, as in "`schema.sql` and
 * `database.ts` from [exactly-once.md](exactly-once.md)".
 */
export function recipeFiles(recipe: string): RecipeFile[] {
  const { blocks, prose } = parseMarkdown(readDocument(`docs/recipes/${recipe}.md`));
  const linked = [...prose.matchAll(/\]\(([\w.-]+\.[jt]s)\)/g)].map(([, name = '']) =>
    readDocument(`docs/recipes/${name}`),
  );
  const own = [...blocks.map(({ code }) => code), ...linked].flatMap((code) => {
    const path = findPath(code);
    return path === undefined ? [] : [{ path, code }];
  });
  const borrowed = [
    ...prose.matchAll(/((?:`[\w-]+\.(?:ts|sql)`[^.;[]*?)+)\sfrom\s+\[[\w-]+\.md\]\(([\w-]+)\.md\)/g),
  ].flatMap(([, files = '', page = '']) =>
    [...files.matchAll(/`([\w-]+\.(?:ts|sql))`/g)].map(([, name = '']) => {
      const file = recipeFiles(page).find(({ path }) => path.replace('src/', '') === name);
      if (file === undefined) throw new Error(`Expected ${page}.md to have the file ${name}`);
      return file;
    }),
  );
  return [...own, ...borrowed];
}

/** Writes the files of a recipe to a folder, as its reader would. */
export async function writeRecipe(name: string, folder: string): Promise<void> {
  for (const { path, code } of recipeFiles(name)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
}

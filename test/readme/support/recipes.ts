import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseMarkdown, readDocument } from './documents.ts';

/** A file of a recipe, which readers copy. */
export interface RecipeFile {
  /** Relative to the reader's project. */
  readonly path: string;
  readonly code: string;
}

/**
 * The files of a page of `docs/recipes/`: each of its blocks whose first line is a comment with a path, and the files that the
 * page borrows, as in "`database.ts` from [exactly-once.md](exactly-once.md)".
 */
export function recipeFiles(recipe: string): RecipeFile[] {
  const { blocks, prose } = parseMarkdown(readDocument(`docs/recipes/${recipe}.md`));
  const own = blocks.flatMap(({ code }) => {
    const path = /^(?:\/\/|--|#) ([\w./[\]-]+\.\w+)\n/.exec(code)?.[1];
    return path === undefined ? [] : [{ path, code }];
  });
  const borrowed = [...prose.matchAll(/`([\w-]+\.ts)`\s+from\s+\[[\w-]+\.md\]\(([\w-]+)\.md\)/g)].map(
    ([, name = '', page = '']) => {
      const file = recipeFiles(page).find(({ path }) => path === `src/${name}`);
      if (file === undefined) throw new Error(`Expected ${page}.md to have the file src/${name}`);
      return file;
    },
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

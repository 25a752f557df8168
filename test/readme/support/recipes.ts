import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseMarkdown, readDocument } from './documents.ts';

/** A file of a recipe, which readers copy. */
export interface RecipeFile {
  /** Relative to the reader's project. */
  readonly path: string;
  readonly code: string;
}

/** The files of a page of `docs/recipes/`: each of its blocks whose first line is a comment with a path. */
export function recipeFiles(name: string): RecipeFile[] {
  return parseMarkdown(readDocument(`docs/recipes/${name}.md`)).blocks.flatMap(({ code }) => {
    const path = /^(?:\/\/|--|#) ([\w./[\]-]+\.\w+)\n/.exec(code)?.[1];
    return path === undefined ? [] : [{ path, code }];
  });
}

/** Writes the files of a recipe to a folder, as its reader would. */
export async function writeRecipe(name: string, folder: string): Promise<void> {
  for (const { path, code } of recipeFiles(name)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
}

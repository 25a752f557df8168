import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeRecipe } from '../readme/support/recipes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Writes a recipe to a new folder inside the repository, so that its imports are found. The caller removes the folder. */
export async function makeRecipeFolder(name: string): Promise<{ folder: string; remove(): Promise<void> }> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'recipe-'));
  await writeRecipe(name, folder);
  return { folder, remove: () => rm(folder, { recursive: true }) };
}

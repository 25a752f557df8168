/**
 * Libraries that exist as ES module and as CommonJS. The bodies take them from `held.cjs`, where the first front that is
 * loaded puts them: ES modules for `import`, CommonJS for `require`; so an app that does one of the two loads one copy.
 */
export const HELD_LIBRARIES = ['msw', 'zod'];

/**
 * Libraries that exist as ES modules only, which a plain `require` can't load under jest and on older loaders. They are
 * shipped as CommonJS, and loaded when first used: the first one makes Node load all of its `fetch`.
 */
export const SHIPPED_LIBRARIES = ['ky', 'p-retry', 'p-throttle'];

/**
 * Makes the CommonJS code of a body take its libraries from the folder `libraries`.
 *
 * @param code - what esbuild made of an ES module
 * @param libraries - the relative path from the code to the folder
 */
export function takeLibraries(code: string, libraries: string): string {
  let taken = code;
  for (const name of HELD_LIBRARIES)
    taken = taken.replaceAll(`require("${name}")`, `require("${libraries}/held.cjs")["${name}"]`);
  for (const name of SHIPPED_LIBRARIES) {
    const load = `const value = require("${libraries}/${name}.cjs");`;
    const lazy = `{ get default() { ${load} Object.defineProperty(this, "default", { value }); return value; } }`;
    taken = taken.replaceAll(`__toESM(require("${name}"))`, lazy);
  }
  const left = [...HELD_LIBRARIES, ...SHIPPED_LIBRARIES].find((name) => taken.includes(`require("${name}")`));
  if (left !== undefined) throw new Error(`Expected every import of ${left} to be one this build knows`);
  return taken;
}

/** The held libraries that the code of a body takes. */
export function heldLibrariesOf(code: string): string[] {
  return HELD_LIBRARIES.filter((name) => new RegExp(`held\\.cjs"\\)(\\.|\\[")${name}\\b`).test(code));
}

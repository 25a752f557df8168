import { dirname, relative } from 'node:path';
import { transform } from 'esbuild';
import { minify } from 'terser';
import type { Options } from 'tsup';
import { takeLibraries } from './libraries.ts';

type Plugin = NonNullable<Options['plugins']>[number];

interface Chunk {
  readonly code: string;
  /** A source map, as JSON. */
  readonly map: string;
}

/** esbuild splits ES modules only, and tsup's own conversion loses the source maps of what is minified later. */
async function toCommonjs({ code, map }: Chunk, target: string, libraries: string): Promise<Chunk> {
  const inlineMap = `data:application/json;base64,${Buffer.from(map).toString('base64')}`;
  const result = await transform(`${code}\n//# sourceMappingURL=${inlineMap}\n`, {
    format: 'cjs',
    platform: 'node',
    target,
    // As in the ES module it comes from.
    banner: '"use strict";',
    keepNames: true,
    sourcemap: 'external',
  });
  // A bundler that writes ES modules can't turn this `require` into an import, and its own throws at run time.
  const withBuiltins = result.code.replaceAll('require("node:', 'process.getBuiltinModule("node:');
  return { code: takeLibraries(withBuiltins, libraries), map: result.map };
}

/** Makes small CommonJS of ES module chunks. */
export function smallBodies(target: string): Plugin {
  return {
    name: 'small-bodies',
    async renderChunk(code, info) {
      const map = typeof info.map === 'string' ? info.map : JSON.stringify(info.map);
      const libraries = relative(dirname(info.path), 'dist/libraries');
      const commonjs = await toCommonjs({ code, map }, target, libraries);
      const small = await minify(commonjs.code, {
        toplevel: true,
        ecma: 2020,
        compress: { passes: 2 },
        sourceMap: { content: commonjs.map },
      });
      if (small.code === undefined || typeof small.map !== 'string')
        throw new Error(`Expected terser to answer with code and map of ${info.path}`);
      // Already a map to the sources; one that is returned would be applied to the map of the chunk once more.
      info.map = small.map;
      return { code: small.code };
    },
  };
}

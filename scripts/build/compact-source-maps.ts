import { readFile, writeFile } from 'node:fs/promises';
import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';
import type { Options } from 'tsup';
import { z } from 'zod';

type Plugin = NonNullable<Options['plugins']>[number];

const sourceMapSchema = z.looseObject({ mappings: z.string() });

/** Keeps the first segment of every run that comes from one line of one source. */
function firstOfEachLine(segments: readonly SourceMapSegment[]): SourceMapSegment[] {
  let before: string | undefined;
  return segments.flatMap((segment): SourceMapSegment[] => {
    const [column, source, line] = segment;
    const place = `${source}:${line}`;
    if (source === undefined || line === undefined || place === before) return [];
    before = place;
    return [[column, source, line, 0]];
  });
}

/**
 * Makes source maps name the file and the line of every stack frame and nothing finer, at a fifth of their size: columns,
 * names of variables and copies of the sources help nobody who reads a stack trace.
 */
export function compactSourceMaps(): Plugin {
  return {
    name: 'compact-source-maps',
    async buildEnd({ writtenFiles }) {
      for (const { name } of writtenFiles.filter((file) => file.name.endsWith('.map'))) {
        const map = sourceMapSchema.parse(JSON.parse(await readFile(name, 'utf8')));
        const mappings = encode(decode(map.mappings).map(firstOfEachLine));
        await writeFile(name, JSON.stringify({ ...map, names: [], sourcesContent: undefined, mappings }));
      }
    },
  };
}

import { readFileSync } from 'node:fs';
import { z } from 'zod';

const limiterRun = z.object({ refused: z.number(), sharePercent: z.number() });
const limiterSchema = z.object({
  cases: z.array(
    z.object({
      name: z.string(),
      measurements: z.array(z.object({ contender: z.string(), median: limiterRun })),
    }),
  ),
  priorityRuns: z.array(
    z.object({ reserve: z.number(), waitedMs: z.number(), backgroundPercent: z.number() }),
  ),
  queueRounds: z.array(z.array(z.object({ name: z.string(), timers: z.number() }))),
});

const fleetSchema = z.object({
  cases: z.array(
    z.object({
      name: z.string(),
      runs: z.array(limiterRun.extend({ contender: z.string(), commandsPerCall: z.number() })),
    }),
  ),
});

const storesSchema = z.object({
  fleets: z.array(
    z.object({
      inbox: z.string(),
      kills: z.number(),
      events: z.number(),
      deliveries: z.number(),
      lost: z.number(),
      repeats: z.number(),
      seconds: z.number(),
    }),
  ),
});

const webhooksSchema = z.object({ parse: z.array(z.object({ ratio: z.number() })) });

const scaleSchema = z.object({
  figures: z.array(z.object({ name: z.string(), values: z.record(z.string(), z.number()) })),
});

const overheadSchema = z.object({
  cpu: z.array(
    z.object({
      events: z.number(),
      costs: z.array(z.object({ contender: z.string(), microsecondsPerCall: z.number(), ratio: z.number() })),
    }),
  ),
  imports: z.array(z.object({ contender: z.string(), processMs: z.number(), importMs: z.number() })),
  unpackedBytes: z.number(),
});

/** What the programs of `bench/` measured last, as far as the README tells it. */
export interface Results {
  readonly limiter: z.output<typeof limiterSchema>;
  readonly fleet: z.output<typeof fleetSchema>;
  readonly stores: z.output<typeof storesSchema>;
  readonly webhooks: z.output<typeof webhooksSchema>;
  readonly scale: z.output<typeof scaleSchema>;
  readonly overhead: z.output<typeof overheadSchema>;
}

/** Reads the result files; they are checked, since other programs write them. */
export function readResults(): Results {
  return {
    limiter: read('limiter', limiterSchema),
    fleet: read('fleet', fleetSchema),
    stores: read('webhooks-stores', storesSchema),
    webhooks: read('webhooks', webhooksSchema),
    scale: read('scale', scaleSchema),
    overhead: read('overhead', overheadSchema),
  };
}

/**
 * The entry with a name.
 *
 * @throws Error naming what the file does not hold
 */
export function named<Entry extends { readonly name: string }>(
  entries: readonly Entry[],
  name: string,
): Entry {
  return found(
    entries.find((entry) => entry.name === name),
    name,
  );
}

/** @throws Error naming what the file does not hold */
export function found<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw new Error(`Expected the results to hold "${name}", got none; measure anew`);
  return value;
}

function read<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> {
  const file = new URL(`../../bench/results/${name}.json`, import.meta.url);
  return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/**
 * Loads the built package, as users do. Measured times need the build, because `tsx` wraps the inner functions of sources,
 * which slows down every call.
 */

// With a literal path, the type checker would need a build first.
const load = (entry: string): Promise<unknown> =>
  import(new URL(`../dist/${entry}.js`, import.meta.url).href);

// The build is made from these sources, so it has their types.
export const main = (await load('index')) as typeof import('../src/index.ts');
export const webhooks = (await load('webhooks')) as typeof import('../src/webhooks/index.ts');
export const redis = (await load('redis')) as typeof import('../src/redis/index.ts');
export const postgres = (await load('postgres')) as typeof import('../src/postgres/index.ts');

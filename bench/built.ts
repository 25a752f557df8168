/**
 * The built package, as users run it. Bare times are measured with it, since `tsx` wraps each inner function of a source to
 * keep its name, at every call.
 */

// The type checker would want a build first if this were a literal.
const load = (entry: string): Promise<unknown> =>
  import(new URL(`../dist/${entry}.js`, import.meta.url).href);

// The build is made from these sources, so it has their types.
export const main = (await load('index')) as typeof import('../src/index.ts');
export const webhooks = (await load('webhooks')) as typeof import('../src/webhooks/index.ts');
export const redis = (await load('redis')) as typeof import('../src/redis/index.ts');
export const postgres = (await load('postgres')) as typeof import('../src/postgres/index.ts');

import type fc from 'fast-check';

/** The values that an arbitrary of fast-check makes. */
export type Made<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;

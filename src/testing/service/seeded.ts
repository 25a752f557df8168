import { createHash } from 'node:crypto';

/** Generates ids that depend on the seed only. Each kind has its own count, so that a further request changes no tracker id. */
export class SeededIds {
  readonly #seed: string;
  readonly #counts = new Map<string, number>();

  constructor(seed: string | number) {
    this.#seed = String(seed);
  }

  next(kind: string): string {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    return this.generate(kind, count);
  }

  generate(kind: string, count: number): string {
    const hex = createHash('sha256').update(`${this.#seed}\n${kind}\n${count}`).digest('hex');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
  }
}

/** A stream of numbers from 0 up to 1 that depends on the seed only. */
export function seededRandom(seed: string | number): () => number {
  const ids = new SeededIds(seed);
  return () => Number.parseInt(ids.next('random').replaceAll('-', '').slice(0, 12), 16) / 2 ** 48;
}

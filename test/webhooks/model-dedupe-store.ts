import type { Claim, DedupeStore } from '../../src/webhooks/dedupe-store.ts';

interface Entry {
  readonly state: 'leased' | 'failed' | 'done';
  readonly token: string | undefined;
  readonly until: number;
  readonly attempts: number;
}

/** The simplest store that keeps the contract. */
export class ModelStore implements DedupeStore {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async claim(
    keys: readonly string[],
    options: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    return keys.map((key) => this.#claimOne(key, options));
  }

  async commit(keys: readonly string[]): Promise<void> {
    for (const key of keys)
      this.#entries.set(key, { state: 'done', token: undefined, until: 0, attempts: 0 });
  }

  async release(
    keys: readonly string[],
    { token, uncounted = false }: { readonly token: string; readonly uncounted?: boolean },
  ): Promise<void> {
    for (const key of keys) {
      const found = this.#entries.get(key);
      if (found?.state !== 'leased' || found.token !== token) continue;
      const attempts = found.attempts - (uncounted ? 1 : 0);
      this.#entries.set(key, { state: 'failed', token: undefined, until: 0, attempts });
    }
  }

  #claimOne(key: string, { token, leaseMs }: { readonly token: string; readonly leaseMs: number }): Claim {
    const found = this.#entries.get(key);
    const now = this.#now();
    if (found?.state === 'done') return { status: 'done' };
    const isRenewal = found?.token === token;
    if (found?.state === 'leased' && found.until > now && !isRenewal)
      return { status: 'busy', retryAfterMs: found.until - now };
    const attempts = (found?.attempts ?? 0) + (isRenewal ? 0 : 1);
    this.#entries.set(key, { state: 'leased', token, until: now + leaseMs, attempts });
    return { status: 'acquired', attempt: attempts };
  }
}

import type { Claim, DedupeStore } from '../../src/webhooks/dedupe-store.ts';

interface Entry {
  state: 'leased' | 'failed' | 'done';
  token: string | undefined;
  /** Tokens that ever held the key. */
  readonly holders: Set<string>;
  until: number;
  attempts: number;
}

/** The simplest store that keeps the contract. A `fault` breaks one rule; an unknown fault breaks none. */
export class ModelStore implements DedupeStore {
  /** The faults that any store has tested for so far. */
  static readonly faults = new Set<string>();
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;
  readonly #fault: string | undefined;
  #locked: string[] = [];

  constructor(now: () => number, fault?: string) {
    this.#now = now;
    this.#fault = fault;
  }

  async claim(
    keys: readonly string[],
    { token, leaseMs }: { readonly token: string; readonly leaseMs: number },
  ): Promise<readonly Claim[]> {
    await this.#lock(keys);
    const claims: Claim[] = [];
    for (const key of this.#has('claims are sorted') ? [...keys].sort() : keys) {
      claims.push(await this.#claimOne(this.#stored(key), token, leaseMs));
    }
    return claims;
  }

  async commit(keys: readonly string[]): Promise<void> {
    await this.#lock(keys);
    for (const key of this.#has('commit takes the first key') ? keys.slice(0, 1) : keys) {
      this.#commitOne(this.#stored(key));
    }
  }

  async release(keys: readonly string[], { token }: { readonly token: string }): Promise<void> {
    await this.#lock(keys);
    const released = keys.map((key) => this.#stored(key));
    const all = this.#has('release takes all of the token') ? [...this.#entries.keys()] : released;
    for (const key of all) this.#releaseOne(key, token);
  }

  async #claimOne(key: string, token: string, leaseMs: number): Promise<Claim> {
    const found = this.#entries.get(key);
    if (this.#has('reads before it writes') || this.#has('inserts collide')) await Promise.resolve();
    if (this.#has('inserts collide') && !found && this.#entries.has(key)) throw new Error('The key exists');
    const now = this.#now();
    const ended = found?.state === 'leased' && found.until <= now && !this.#has('lease never ends');
    const forgotten = this.#has('done ends with the lease') && found !== undefined && found.until <= now;
    if (found?.state === 'done' && !forgotten) return { status: 'done' };
    const held = found?.state === 'leased' && !ended;
    const welcomed = this.#has('old owner keeps access') && found?.holders.has(token) === true;
    const isHolder = (found?.token === token || welcomed) && !this.#has('own lease is busy');
    if (held && !isHolder && !this.#has('never busy')) {
      return { status: 'busy', retryAfterMs: this.#has('no time left to wait') ? 0 : found.until - now };
    }
    const lateRenewalCounts = this.#has('renewal after the end counts') && ended;
    const renews = isHolder && !lateRenewalCounts && !this.#has('renewal counts');
    const before = this.#has('attempts start again') && ended ? 0 : (found?.attempts ?? 0);
    const attempts = before + (renews ? 0 : 1);
    const keepsEnd = this.#has('renewal does not extend') && isHolder && found !== undefined;
    this.#entries.set(key, {
      state: 'leased',
      token,
      holders: new Set([...(found?.holders ?? []), token]),
      until: keepsEnd ? found.until : now + leaseMs,
      attempts,
    });
    return { status: 'acquired', attempt: this.#has('first attempt is zero') ? attempts - 1 : attempts };
  }

  #commitOne(key: string): void {
    if (this.#has('commit does nothing')) return;
    const found = this.#entries.get(key);
    if (this.#has('commit needs a row') && found === undefined) return;
    if (this.#has('commit only once') && found?.state === 'done') throw new Error('The key exists');
    const live = found?.state === 'leased' && found.until > this.#now();
    if (this.#has('commit needs a live lease') && found !== undefined && !live) return;
    if (this.#has('commit loses against a new owner') && (found?.holders.size ?? 0) > 1) return;
    const until = found?.until ?? Number.POSITIVE_INFINITY;
    this.#entries.set(key, { state: 'done', token: undefined, holders: new Set(), until, attempts: 0 });
  }

  #releaseOne(key: string, token: string): void {
    if (this.#has('release does nothing')) return;
    const found = this.#entries.get(key);
    if (found === undefined && this.#has('release counts unknown keys')) {
      const until = this.#now();
      this.#entries.set(key, { state: 'failed', token: undefined, holders: new Set(), until, attempts: 1 });
    }
    if (found === undefined) return;
    if (found.state !== 'leased' && !this.#has('release undoes done')) return;
    if (found.state === 'leased' && found.token !== token && !this.#has('release ignores the token')) return;
    found.state = 'failed';
    if (!this.#has('release keeps the token')) found.token = undefined;
    if (this.#has('release forgets attempts')) this.#entries.delete(key);
  }

  /** Fails as a database does when two calls lock the same keys in different orders. */
  async #lock(keys: readonly string[]): Promise<void> {
    if (keys.length === 0 && this.#has('no keys are an error')) throw new Error('Nothing to do');
    if (!this.#has('locks in the order given')) return;
    const first = keys[0];
    if (first !== undefined && this.#locked.some((key) => key !== first)) throw new Error('Deadlock');
    if (first !== undefined && keys.length > 1) this.#locked.push(first);
    await Promise.resolve();
    this.#locked = [];
  }

  #stored(key: string): string {
    if (this.#has('keys are folded')) return key.trim().toLowerCase();
    if (this.#has('keys are patterns')) return key.replace(/[%*'{}]/g, '');
    if (this.#has('keys are plain letters')) return key.normalize('NFC').replace(/[^\p{ASCII}é]/gu, '?');
    if (this.#has('keys lose control characters')) return key.replace(/\p{Cc}/gu, '');
    if (this.#has('keys lose broken surrogates')) return key.replace(/\p{Surrogate}/gu, '\ufffd');
    if (this.#has('keys are cut')) return key.slice(0, 255);
    return key;
  }

  #has(fault: string): boolean {
    ModelStore.faults.add(fault);
    return this.#fault === fault;
  }
}

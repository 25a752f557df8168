import { sleep } from '../common/timing.ts';
import { TrackingError } from '../errors.ts';
import type { Cancellation } from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import { Group, InFlight, type StoreRequest } from './group.ts';
import type { StoreInboxSettings } from './options.ts';

/** What a callback, or a transaction, failed with. */
export interface Failure {
  readonly error: unknown;
}

/** The work on keys under one claim: leases of a store, or rows of a transaction. */
export interface WorkSession<Extra extends object> {
  /** What is known of each key; it changes when a lease is lost. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** Claims again what may have been lost since; undefined when nothing was. Rejects when the store fails. */
  confirm(): Promise<void> | undefined;
  /**
   * Does work for keys, which are done at the end of the session unless it fails. Rejects when the failure undoes the whole session.
   *
   * @param isUndoable - whether a failure has to leave the rest of the session alone
   */
  attempt(
    keys: readonly string[],
    isUndoable: boolean,
    cancellation: Cancellation,
    work: (extra: Extra) => Promise<void> | undefined,
  ): Promise<Failure | undefined>;
  /** Gives keys back whose work failed. Rejects when the store fails. */
  giveBack(keys: readonly string[]): Promise<void>;
}

/** A session that came to nothing: `keys` are those whose work undid it, undefined when the store did. */
export interface Undone extends Failure {
  readonly keys: readonly string[] | undefined;
}

/** How an inbox makes sure that the work of a webhook is done once; one for all webhooks of the inbox. */
export interface WorkSource<Extra extends object> {
  readonly inFlight: InFlight;
  /** Whether a session waits for what others work on; if not, it is claimed again after a pause. */
  readonly isWaiting: boolean;
  /**
   * Claims keys and makes last what `work` does with them; resolves to why it does not last, with all of it undone.
   * Rejects when the store fails before the work began.
   *
   * @param waitMs - how long to wait for what others work on
   */
  session(
    keys: readonly string[],
    waitMs: number,
    work: (session: WorkSession<Extra>) => Promise<void>,
  ): Promise<Undone | undefined>;
  /** Counts a failed attempt at keys after their session was undone. Rejects when the store fails. */
  giveBack(keys: readonly string[]): Promise<void>;
}

/** A heartbeat may come this many times late or fail before a lease ends. */
const BEATS_PER_LEASE = 3;
/** How long handled keys may wait for the end of their webhook to be marked: what a crash repeats at most. */
const COMMIT_WITHIN_MS = 100;
/** Pauses between the tries of a commit: worth some, since the work is done and an unmarked key repeats it. */
const COMMIT_PAUSES_MS = [50, 200, 800];

/** The sessions of an inbox with a `DedupeStore`: one statement claims all keys of a webhook, and one commits them. */
export class StoreSource implements WorkSource<object> {
  readonly inFlight = new InFlight();
  readonly isWaiting = false;
  readonly #settings: StoreInboxSettings;
  readonly #claims: Group<Claim>;
  readonly #commits: Group<void>;

  constructor(settings: StoreInboxSettings) {
    const { store, retainMs } = settings;
    this.#settings = settings;
    this.#claims = new Group((keys, token) => claimAll(settings, keys, token));
    this.#commits = new Group<void>(async (keys) => {
      await store.commit(keys, { retainMs });
      return [];
    });
  }

  async session(
    keys: readonly string[],
    _waitMs: number,
    work: (session: WorkSession<object>) => Promise<void>,
  ): Promise<undefined> {
    const session = new StoreSession(this.#settings, this.#claims, this.#commits);
    try {
      await session.claim(keys);
      await work(session);
    } finally {
      await session.end();
    }
  }

  /** Its sessions are never undone. */
  async giveBack(): Promise<void> {}
}

async function claimAll({ store, leaseMs }: StoreInboxSettings, keys: readonly string[], token: string) {
  const claims = await store.claim(keys, { token, leaseMs });
  if (claims.length === keys.length) return claims;
  throw new TrackingError(
    `Expected \`store.claim\` to return ${keys.length} claims, one a key, got ${claims.length}`,
  );
}

/** The keys that one webhook leased: all under one token, renewed by one heartbeat. */
class StoreSession implements WorkSession<object> {
  readonly claims = new Map<string, Claim>();
  readonly #settings: StoreInboxSettings;
  readonly #claims: Group<Claim>;
  readonly #commits: Group<void>;
  readonly #leased = new Set<string>();
  #token = '';
  /** When the leases were surely fresh, on the clock of `performance.now`. */
  #claimedAt = 0;
  #beatTimer: ReturnType<typeof setTimeout> | undefined;
  #beat: Promise<void> | undefined;
  #working: { readonly keys: readonly string[]; readonly cancellation: Cancellation } | undefined;
  /** Handled and not committed, since when. */
  #handled: string[] = [];
  #handledSince = 0;
  #commitTimer: ReturnType<typeof setTimeout> | undefined;
  #commit: Promise<void> | undefined;

  constructor(settings: StoreInboxSettings, claims: Group<Claim>, commits: Group<void>) {
    this.#settings = settings;
    this.#claims = claims;
    this.#commits = commits;
  }

  async claim(keys: readonly string[]): Promise<void> {
    const request: StoreRequest = { keys };
    this.#claimedAt = performance.now();
    try {
      this.#note(keys, await this.#claims.ask(request));
    } catch (error) {
      // A claim may fail in part; `end` gives back what the store took all the same.
      for (const key of keys) this.#leased.add(key);
      throw error;
    } finally {
      this.#token = request.token ?? '';
    }
  }

  confirm(): Promise<void> | undefined {
    // Without this a batch that the machine has suspended outlives its lease, and its tail is handled twice with no crash at all.
    const isFresh = performance.now() - this.#claimedAt < this.#settings.leaseMs / 2;
    return isFresh ? undefined : this.#renew([...this.#leased]);
  }

  async attempt(
    keys: readonly string[],
    _isUndoable: boolean,
    cancellation: Cancellation,
    work: (extra: object) => Promise<void> | undefined,
  ): Promise<Failure | undefined> {
    this.#working = { keys, cancellation };
    try {
      const pending = work({});
      if (pending !== undefined) {
        this.#startTimers();
        await pending;
      }
    } catch (error) {
      return { error };
    } finally {
      this.#working = undefined;
    }
    const now = performance.now();
    if (this.#handled.length === 0) this.#handledSince = now;
    for (const key of keys) this.#handled.push(key);
    if (now - this.#handledSince >= COMMIT_WITHIN_MS) await this.#commitHandled();
    return undefined;
  }

  async giveBack(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#leased.delete(key);
    // A renewal that overtakes the release would lease the keys again, with nobody working on them.
    await this.#beat;
    await this.#settings.store.release(keys, { token: this.#token });
  }

  /** Marks what is handled, and gives back what is not; never rejects. */
  async end(): Promise<void> {
    if (this.#handled.length > 0 || this.#commit !== undefined) await this.#commitHandled();
    clearTimeout(this.#beatTimer);
    if (this.#leased.size === 0) return;
    const undone = [...this.#leased];
    await this.giveBack(undone).catch((error) => this.#settings.onError(error, 'release', undone));
  }

  /** Tries again for a while; never rejects, since the work is done whatever the store says. */
  async #commitHandled(): Promise<void> {
    clearTimeout(this.#commitTimer);
    this.#commitTimer = undefined;
    await this.#commit;
    const keys = this.#handled;
    if (keys.length === 0) return;
    this.#handled = [];
    this.#commit = this.#commitKeys(keys);
    await this.#commit;
    this.#commit = undefined;
  }

  async #commitKeys(keys: readonly string[]): Promise<void> {
    for (const pauseMs of [...COMMIT_PAUSES_MS, undefined]) {
      try {
        await this.#commits.ask({ keys });
        break;
      } catch (error) {
        this.#settings.onError(error, 'commit', keys);
        if (pauseMs !== undefined) await sleep(pauseMs);
      }
    }
    for (const key of keys) this.#leased.delete(key);
  }

  #note(keys: readonly string[], claims: readonly Claim[], isWanted = (_key: string) => true): void {
    for (const [index, claim] of claims.entries()) {
      const key = keys[index] ?? '';
      if (!isWanted(key)) continue;
      this.claims.set(key, claim);
      if (claim.status === 'acquired') this.#leased.add(key);
      else this.#leased.delete(key);
    }
  }

  /** Only for work that takes its time: most is over before a timer is due. */
  #startTimers(): void {
    this.#beatTimer ??= unrefTimer(() => {
      this.#beatTimer = undefined;
      this.#beat = this.#renewAll().finally(() => {
        this.#beat = undefined;
        if (this.#leased.size > 0) this.#startTimers();
      });
    }, this.#settings.leaseMs / BEATS_PER_LEASE);
    if (this.#handled.length === 0) return;
    this.#commitTimer ??= unrefTimer(() => void this.#commitHandled(), COMMIT_WITHIN_MS);
  }

  async #renewAll(): Promise<void> {
    const keys = [...this.#leased];
    if (keys.length === 0) return;
    try {
      await this.#renew(keys);
    } catch (error) {
      this.#settings.onError(error, 'renew', keys);
      return;
    }
    const { keys: working = [], cancellation } = this.#working ?? {};
    if (working.some((key) => keys.includes(key) && this.claims.get(key)?.status !== 'acquired')) {
      cancellation?.abort(new TrackingError('Another receiver took the work over'));
    }
  }

  async #renew(keys: readonly string[]): Promise<void> {
    const claimedAt = performance.now();
    const claims = await claimAll(this.#settings, keys, this.#token);
    this.#claimedAt = claimedAt;
    // What was committed meanwhile is ours no more.
    this.#note(keys, claims, (key) => this.#leased.has(key));
  }
}

/** Work that still goes on keeps the process alive by itself. */
function unrefTimer(callback: () => void, delayMs: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(callback, delayMs);
  timer.unref?.();
  return timer;
}

import { sleep } from '../common/abort.ts';
import { TrackingError } from '../errors.ts';
import type { Cancellation, WorkItem } from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';
import { Group, InFlight, MOST_KEYS, type StoreRequest } from './group.ts';
import type { StoreInboxSettings } from './options.ts';

/** What a callback, or a transaction, failed with. */
export interface Failure {
  readonly error: unknown;
}

/** The work on items under one claim: leases of a store, or rows of a transaction. */
export interface WorkSession<Extra extends object> {
  /** Claims again what may have been lost since; undefined when nothing was. Rejects when the store fails. */
  confirm(): Promise<void> | undefined;
  /**
   * Does work for items, which are done at the end of the session unless it fails. Rejects when the failure undoes the whole session.
   *
   * @param isUndoable - whether a failure has to leave the rest of the session alone
   * @param work - is over at once when it returns undefined; so is the attempt then, where the session allows
   */
  attempt(
    items: readonly WorkItem[],
    isUndoable: boolean,
    cancellation: Cancellation,
    work: (extra: Extra) => Promise<void> | undefined,
  ): Promise<Failure | undefined> | Failure | undefined;
  /** Gives items back whose work failed. Rejects when the store fails. */
  giveBack(items: readonly WorkItem[]): Promise<void>;
}

/** A session that came to nothing: `items` are those whose work undid it, undefined when the store did. */
export interface Undone extends Failure {
  readonly items: readonly WorkItem[] | undefined;
}

/** How an inbox makes sure that the work of a webhook is done once; one for all webhooks of the inbox. */
export interface WorkSource<Extra extends object> {
  readonly inFlight: InFlight;
  /** Whether a session waits for what others work on; if not, it is claimed again after a pause. */
  readonly isWaiting: boolean;
  /**
   * Claims items, each of which says then what is known of it, and makes last what `work` does with them; resolves to why it
   * does not last, with all of it undone. Rejects when the store fails before the work began.
   *
   * @param waitMs - how long to wait for what others work on
   */
  session(
    items: readonly WorkItem[],
    waitMs: number,
    work: (session: WorkSession<Extra>) => Promise<void>,
  ): Promise<Undone | undefined>;
  /** Counts a failed attempt at items after their session was undone. Rejects when the store fails. */
  giveBack(items: readonly WorkItem[]): Promise<void>;
}

/** The keys of items, in their order. */
export function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

/** Whether an item is claimed, so that no other process works on it. */
export function isLeased({ claim }: WorkItem): boolean {
  return claim?.status === 'acquired';
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
    this.#commits = new Group<void>((keys) =>
      inSlices(keys, async (slice) => [await store.commit(slice, { retainMs })]),
    );
  }

  async session(
    items: readonly WorkItem[],
    _waitMs: number,
    work: (session: WorkSession<object>) => Promise<void>,
  ): Promise<undefined> {
    const session = new StoreSession(items, this.#settings, this.#claims, this.#commits);
    try {
      await session.claim();
      await work(session);
    } finally {
      await session.end();
    }
  }

  /** Its sessions are never undone. */
  async giveBack(): Promise<void> {}
}

function claimAll({ store, leaseMs }: StoreInboxSettings, keys: readonly string[], token: string) {
  return inSlices(keys, async (slice) => {
    const claims = await store.claim(slice, { token, leaseMs });
    if (claims.length === slice.length) return claims;
    throw new TrackingError(
      `Expected \`store.claim\` to return ${slice.length} claims, one a key, got ${claims.length}`,
    );
  });
}

/** Runs statements of at most so many keys, one after the other; the results of all. */
async function inSlices<Result>(
  keys: readonly string[],
  send: (slice: readonly string[]) => Promise<readonly Result[]>,
): Promise<readonly Result[]> {
  const results: (readonly Result[])[] = [];
  for (let start = 0; start < keys.length; start += MOST_KEYS) {
    results.push(await send(keys.slice(start, start + MOST_KEYS)));
  }
  return results.flat();
}

/** The items that one webhook leased: all under one token, renewed by one heartbeat. */
class StoreSession implements WorkSession<object> {
  readonly #items: readonly WorkItem[];
  readonly #settings: StoreInboxSettings;
  readonly #claims: Group<Claim>;
  readonly #commits: Group<void>;
  #token = '';
  /** Whether the claim failed, which it may do in part. */
  #isUnsure = false;
  /** When the leases were surely fresh, on the clock of `performance.now`. */
  #claimedAt = 0;
  #beatTimer: ReturnType<typeof setTimeout> | undefined;
  #beat: Promise<void> | undefined;
  #working: { readonly items: readonly WorkItem[]; readonly cancellation: Cancellation } | undefined;
  /** Handled and not committed, since when. */
  #handled: WorkItem[] = [];
  #handledSince = 0;
  #commitTimer: ReturnType<typeof setTimeout> | undefined;
  #commit: Promise<void> | undefined;

  constructor(
    items: readonly WorkItem[],
    settings: StoreInboxSettings,
    claims: Group<Claim>,
    commits: Group<void>,
  ) {
    this.#items = items;
    this.#settings = settings;
    this.#claims = claims;
    this.#commits = commits;
  }

  async claim(): Promise<void> {
    const request: StoreRequest = { keys: keysOf(this.#items) };
    this.#claimedAt = performance.now();
    try {
      const claims = await this.#claims.ask(request);
      let index = 0;
      for (const item of this.#items) item.claim = claims[index++];
    } catch (error) {
      this.#isUnsure = true;
      throw error;
    } finally {
      this.#token = request.token ?? '';
    }
  }

  confirm(): Promise<void> | undefined {
    // Without this a batch that the machine has suspended outlives its lease, and its tail is handled twice with no crash at all.
    const isFresh = performance.now() - this.#claimedAt < this.#settings.leaseMs / 2;
    return isFresh ? undefined : this.#renew(this.#items.filter(isLeased));
  }

  attempt(
    items: readonly WorkItem[],
    _isUndoable: boolean,
    cancellation: Cancellation,
    work: (extra: object) => Promise<void> | undefined,
  ): Promise<Failure | undefined> | Failure | undefined {
    try {
      const pending = work({});
      return pending === undefined ? this.#noteHandled(items) : this.#watch(pending, items, cancellation);
    } catch (error) {
      return { error };
    }
  }

  /** Work that takes its time: its leases are renewed meanwhile. */
  async #watch(pending: Promise<void>, items: readonly WorkItem[], cancellation: Cancellation) {
    this.#working = { items, cancellation };
    this.#startTimers();
    try {
      await pending;
    } catch (error) {
      return { error };
    } finally {
      this.#working = undefined;
    }
    return this.#noteHandled(items);
  }

  #noteHandled(items: readonly WorkItem[]): Promise<undefined> | undefined {
    const now = performance.now();
    if (this.#handled.length === 0) this.#handledSince = now;
    for (const item of items) this.#handled.push(item);
    return now - this.#handledSince < COMMIT_WITHIN_MS ? undefined : this.#commitHandled();
  }

  async giveBack(items: readonly WorkItem[]): Promise<void> {
    for (const item of items) item.claim = undefined;
    // A renewal that overtakes the release would lease the keys again, with nobody working on them.
    await this.#beat;
    const { store } = this.#settings;
    await inSlices(keysOf(items), async (slice) => [await store.release(slice, { token: this.#token })]);
  }

  /** Marks what is handled, and gives back what is not; never rejects. */
  async end(): Promise<void> {
    await this.#commitHandled();
    clearTimeout(this.#beatTimer);
    const undone = this.#isUnsure ? this.#items : this.#items.filter(isLeased);
    if (undone.length === 0) return;
    await this.giveBack(undone).catch((error) => this.#settings.onError(error, 'release', keysOf(undone)));
  }

  /** Tries again for a while; never rejects, since the work is done whatever the store says. */
  async #commitHandled(): Promise<undefined> {
    clearTimeout(this.#commitTimer);
    this.#commitTimer = undefined;
    // Several may wait for the same commit, and the first of them sends the next one.
    while (this.#commit !== undefined) await this.#commit;
    const items = this.#handled;
    if (items.length === 0) return;
    this.#handled = [];
    this.#commit = this.#commitItems(items).finally(() => {
      this.#commit = undefined;
    });
    await this.#commit;
  }

  async #commitItems(items: readonly WorkItem[]): Promise<void> {
    const keys = keysOf(items);
    for (const pauseMs of [...COMMIT_PAUSES_MS, undefined]) {
      try {
        await this.#commits.ask({ keys });
        break;
      } catch (error) {
        this.#settings.onError(error, 'commit', keys);
        if (pauseMs !== undefined) await sleep(pauseMs);
      }
    }
    for (const item of items) item.claim = undefined;
  }

  /** Only for work that takes its time: most is over before a timer is due. */
  #startTimers(): void {
    this.#beatTimer ??= unrefTimer(() => {
      this.#beatTimer = undefined;
      this.#beat = this.#renewAll().finally(() => {
        this.#beat = undefined;
        if (this.#items.some(isLeased)) this.#startTimers();
      });
    }, this.#settings.leaseMs / BEATS_PER_LEASE);
    if (this.#handled.length === 0) return;
    this.#commitTimer ??= unrefTimer(() => void this.#commitHandled(), COMMIT_WITHIN_MS);
  }

  async #renewAll(): Promise<void> {
    const items = this.#items.filter(isLeased);
    if (items.length === 0) return;
    try {
      await this.#renew(items);
    } catch (error) {
      this.#settings.onError(error, 'renew', keysOf(items));
    }
    const working = this.#working;
    if (working?.items.some((item) => !isLeased(item)))
      working.cancellation.abort(new TrackingError('Another receiver took the work over'));
  }

  async #renew(items: readonly WorkItem[]): Promise<void> {
    const claimedAt = performance.now();
    const claims = await claimAll(this.#settings, keysOf(items), this.#token);
    this.#claimedAt = claimedAt;
    // What was committed or given back meanwhile is ours no more.
    for (const [index, item] of items.entries()) if (isLeased(item)) item.claim = claims[index];
  }
}

/** Work that still goes on keeps the process alive by itself. */
function unrefTimer(callback: () => void, delayMs: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(callback, delayMs);
  timer.unref?.();
  return timer;
}

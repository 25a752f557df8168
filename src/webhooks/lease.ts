import { randomUUID } from 'node:crypto';
import type { LazyController } from '../common/abort.ts';
import { ReschedulableTimer, sleep, systemClock } from '../common/clock.ts';
import { TrackingError } from '../errors.ts';
import { type Claim, callStore, checkClaims, StoreTimeoutError } from './dedupe-store.ts';
import type { InboxSettings } from './inbox-options.ts';
import {
  applyClaim,
  getKeys,
  type ItemState,
  isClaimed,
  isOpen,
  isStoreDown,
  select,
  setState,
  type WorkItem,
} from './items.ts';

const COMMIT_TRIES_MS = 10_000;
const FIRST_COMMIT_PAUSE_MS = 50;
const MAX_COMMIT_PAUSE_MS = 1_600;

/** Finished items stay leased until they are committed. */
const LEASED_STATES: readonly ItemState[] = ['claimed', 'handled', 'deadLettered'];
/** The attempt of these items is taken back, because no callback has failed. */
const UNCOUNTED_STATES: readonly ItemState[] = ['interrupted', 'unavailable', 'putOff'];

/** The lease of one job. From the claim to the release, a timer renews it every third of `leaseMs`. */
export class Lease {
  readonly #settings: InboxSettings;
  readonly #items: readonly WorkItem[];
  /** Each lease has a token of its own, so a release that is late cannot free the keys of a later lease. */
  readonly #token = randomUUID();
  readonly #timer = new ReschedulableTimer(() => this.#onTimer());
  #lostBecause: TrackingError | undefined;
  /** The controller of the callback that runs. */
  #callback: LazyController | undefined;
  /** The calls of claims that timed out. */
  readonly #lateClaims: Promise<unknown>[] = [];
  #endsAt = 0;
  #renewal: Promise<boolean> | undefined;

  constructor(settings: InboxSettings, items: readonly WorkItem[]) {
    this.#settings = settings;
    this.#items = items;
  }

  /** True if another receiver has taken an item over, or may do so because the lease has ended. */
  get isLost(): boolean {
    return this.#lostBecause !== undefined;
  }

  /** Aborts the controller of a callback if the lease is lost before the callback has ended. */
  watch(callback: LazyController | undefined): void {
    this.#callback = callback;
    if (callback === undefined || this.#lostBecause === undefined) return;
    // If the lease was renewed meanwhile, it is not lost for this callback, which gets only items that are still claimed.
    if (systemClock.now() < this.#endsAt) this.#lostBecause = undefined;
    else callback.abort(this.#lostBecause);
  }

  /** The items that this receiver has claimed and whose callback has not ended. */
  get claimed(): WorkItem[] {
    return select(this.#items, 'claimed');
  }

  /** Claims all items. If the store fails, or replies too late, they are unavailable. */
  async claim(): Promise<void> {
    try {
      await this.#claim(this.#items);
    } catch (error) {
      this.#settings.onError(error, 'claim', getKeys(this.#items));
      setState(this.#items, 'unavailable');
    }
    if (!this.#items.some(isClaimed)) return;
    if (await this.ensure()) this.#setTimer();
    else setState(this.claimed, 'unavailable');
  }

  /**
   * Renews the lease if half of it is over, for example after failed renewals or a slow claim. Resolves to false if the store fails, or
   * replies after the lease has ended.
   */
  async ensure(): Promise<boolean> {
    const { leaseMs, onError } = this.#settings;
    if (systemClock.now() < this.#endsAt - leaseMs / 2) return true;
    if (!(await this.#renew())) return false;
    if (systemClock.now() < this.#endsAt) return true;
    const message = `The store replied after the lease had ended (\`leaseMs\` is ${leaseMs}); raise \`leaseMs\``;
    onError(new TrackingError(message), 'renew', getKeys(this.claimed));
    return false;
  }

  /** Tries to commit for ten seconds. Without the commit, a redelivery would repeat finished work. */
  async commit(items: readonly WorkItem[]): Promise<void> {
    const { store, retainMs, onError } = this.#settings;
    const keys = getKeys(items);
    let giveUpAt: number | undefined;
    for (let pauseMs = FIRST_COMMIT_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_COMMIT_PAUSE_MS)) {
      try {
        return await this.#limit(async () => store.commit(keys, { retainMs }));
      } catch (error) {
        onError(error, 'commit', keys);
      }
      giveUpAt ??= systemClock.now() + COMMIT_TRIES_MS;
      const remainingMs = giveUpAt - systemClock.now();
      if (remainingMs <= 0) return;
      await sleep(Math.min(pauseMs, remainingMs));
    }
  }

  /** Ends the renewals, and releases the items that are not done. */
  async release(): Promise<void> {
    this.#timer.clear();
    const released = this.#releaseUndone();
    // Do not wait for a store that may be down.
    if (!isStoreDown(this.#items)) await released;
  }

  /** Sets the timer to the next renewal, or to the end of the lease if that comes first. The timer does not keep the process alive. */
  #setTimer(): void {
    const renewAt = systemClock.now() + this.#settings.leaseMs / 3;
    this.#timer.set(this.isLost ? renewAt : Math.min(renewAt, this.#endsAt), false);
  }

  #onTimer(): void {
    if (systemClock.now() >= this.#endsAt) this.#lose('another process may now handle the event, too');
    void this.#renew();
    this.#setTimer();
  }

  /** Shares a renewal that is under way. Never rejects; resolves to false if the store fails. */
  #renew(): Promise<boolean> {
    this.#renewal ??= this.#sendRenewal().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #sendRenewal(): Promise<boolean> {
    const { claimed } = this;
    const items = select(this.#items, ...LEASED_STATES);
    // Another receiver has taken over all items.
    if (items.length === 0) return true;
    try {
      await this.#claim(items);
    } catch (error) {
      this.#settings.onError(error, 'renew', getKeys(items));
      return false;
    }
    if (select(claimed, 'busy', 'duplicate').length > 0) this.#lose('another process now handles the event');
    return true;
  }

  async #claim(items: readonly WorkItem[]): Promise<void> {
    const { store, leaseMs, retainMs } = this.#settings;
    const keys = getKeys(items);
    const claimedAt = systemClock.now();
    let claims: readonly Claim[];
    try {
      const options = { token: this.#token, leaseMs, retainMs };
      const reply = await this.#limit(async () => store.claim(keys, options));
      claims = checkClaims(reply, keys.length);
    } catch (error) {
      if (error instanceof StoreTimeoutError) this.#lateClaims.push(error.lateReply);
      throw error;
    }
    this.#endsAt = claimedAt + leaseMs;
    for (const [index, item] of items.entries()) {
      const claim = claims[index];
      // The other items have their outcome already.
      if (claim !== undefined && (isOpen(item) || isClaimed(item))) applyClaim(item, claim);
    }
  }

  #lose(reason: string): void {
    const message =
      `The lease of the event was not renewed in time (\`leaseMs\` is ${this.#settings.leaseMs}), and ${reason}; ` +
      'stop this callback, and raise `leaseMs` if this happens often';
    this.#lostBecause ??= new TrackingError(message);
    this.#callback?.abort(this.#lostBecause);
  }

  /** Releases what is not done. The attempt of a failed item counts. */
  async #releaseUndone(): Promise<void> {
    const failed = select(this.#items, 'failed');
    const others = select(this.#items, ...UNCOUNTED_STATES);
    if (failed.length === 0 && others.length === 0) return;
    await Promise.all([this.#tryRelease(failed, false), this.#tryRelease(others, true)]);
    // A claim that timed out can reach the store after this release, even if its call rejects. It then leases the keys again and
    // counts one more attempt. So release the keys again after the late claim, and take this attempt back.
    const releaseAgain = () => this.#release([...failed, ...others], true);
    for (const late of this.#lateClaims) void late.finally(releaseAgain).catch(() => {});
  }

  async #tryRelease(items: readonly WorkItem[], uncounted: boolean): Promise<void> {
    try {
      await this.#release(items, uncounted);
    } catch (error) {
      // If the store is down, its failed claim was reported already.
      if (!isStoreDown(this.#items)) this.#settings.onError(error, 'release', getKeys(items));
    }
  }

  async #release(items: readonly WorkItem[], uncounted: boolean): Promise<void> {
    if (items.length === 0) return;
    // Wait for a running renewal before releasing.
    await this.#renewal;
    const options = { token: this.#token, uncounted };
    await this.#limit(async () => this.#settings.store.release(getKeys(items), options));
  }

  /** Limits the time of a store that does not limit its calls itself. */
  #limit<Result>(call: () => Promise<Result>): Promise<Result> {
    const { needsTimeLimit, storeTimeoutMs } = this.#settings;
    return needsTimeLimit ? callStore(call, storeTimeoutMs) : call();
  }
}

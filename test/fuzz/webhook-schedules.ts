import fc from 'fast-check';
import type { WebhookMessage } from '../../src/schemas/webhook.ts';
import type { DeadLetterContext } from '../../src/webhooks/inbox-options.ts';
import {
  createWebhookHandler,
  type DedupeStore,
  type EventContext,
  MemoryDedupeStore,
  parseWebhook,
  type WebhookHandler,
  WebhookInbox,
  type WebhookReport,
} from '../../src/webhooks/index.ts';
import type { Made } from '../support/made.ts';
import { post, SECRET } from '../webhooks/make-handler.ts';
import { payload, tracking } from '../webhooks/support.ts';
import { printed } from './harness.ts';
import { Problems, pause, scheduleProperty } from './virtual-time.ts';

/** Without `onDeadLetter`, an event of more attempts comes after all other events. */
const PUT_OFF_AFTER = 10;
/** The sender gives a request up after this time. */
const SENDER_TIMEOUT_MS = 15_000;
const COMMAND_TIMEOUT_MS = 2_000;
const LIMIT_MS = 3_600_000;

/**
 * What happens to one call of the store:
 * - `plain`: it is carried out, and its reply comes
 * - `refused`: it fails and is not carried out
 * - `conflict`: like `refused`, if another call with one of its keys is under way
 * - `lostReply`: it is carried out and fails
 * - `slow`: it is carried out after `ms`
 * - `lateReply`: its reply comes after `ms`
 * - `hangs`: it fails after a minute and is not carried out
 */
const storeFate = fc.record({
  kind: fc.constantFrom('refused', 'conflict', 'lostReply', 'slow', 'lateReply', 'hangs'),
  ms: fc.constantFrom(300, 1_500, 3_000, 6_000, 20_000),
  /** The call has this fate if the number is below the `faultShare` of the schedule. */
  share: fc.double({ min: 0, max: 1, noNaN: true }),
});
type StoreFate = Made<typeof storeFate>;

const callbackFate = fc.record({
  tookMs: fc.constantFrom(0, 30, 700, 5_000, 20_000),
  fails: fc.boolean(),
  heedsSignal: fc.boolean(),
});

const delivery = fc.record({
  atMs: fc.nat(10_000),
  receiver: fc.nat(2),
  retryMs: fc.constantFrom(500, 3_000, 30_000),
  trackings: fc.array(
    fc.tuple(fc.constantFrom('t1', 't2'), fc.array(fc.constantFrom('e1', 'e2', 'e3'), { maxLength: 3 })),
    { minLength: 1, maxLength: 2 },
  ),
  /** The webhook comes so many times at once. */
  copies: fc.constantFrom(1, 1, 2, 3),
});
type Delivery = Made<typeof delivery>;

/** A receiver freezes for a while, dies, or is closed in time; a new one takes its place in the last two cases. */
const kill = fc.record({
  atMs: fc.nat(20_000),
  receiver: fc.nat(2),
  kind: fc.constantFrom('freeze', 'crash', 'close'),
  ms: fc.constantFrom(500, 5_000, 90_000),
});

const schedule = fc.record({
  receivers: fc.integer({ min: 1, max: 3 }),
  leaseMs: fc.constantFrom(1_000, 6_000, 60_000),
  isPerMessage: fc.boolean(),
  maxAttempts: fc.constantFrom(undefined, 1, 2, 3),
  deadLetterFails: fc.array(fc.boolean(), { maxLength: 3 }),
  /** True if the store limits its calls itself. */
  ownsTimeLimit: fc.boolean(),
  delayMs: fc.constantFrom(0, 20),
  faultShare: fc.constantFrom(0, 0.1, 0.4),
  storeFates: fc.array(storeFate, { maxLength: 60, size: 'max' }),
  callbackFates: fc.array(callbackFate, { maxLength: 15, size: 'max' }),
  deliveries: fc.array(delivery, { minLength: 1, maxLength: 6 }),
  kills: fc.array(kill, { maxLength: 3 }),
});
type Schedule = Made<typeof schedule>;

/** A lease as the store sees it. */
interface Granted {
  readonly key: string;
  readonly receiver: Receiver;
  readonly token: string;
  readonly attempt: number;
  /** The request whose webhook it is for. */
  readonly sent: Attempt | undefined;
  /** A call with its key failed or was late, or its receiver froze or died. Such a lease may end before the work. */
  isTroubled: boolean;
  /** It ended by its time, and another claim got the key. */
  isTakenOver: boolean;
}

/** A callback that runs. */
interface Run {
  readonly lease: Granted;
}

/** One request of the sender, and what the callbacks have done for it. */
interface Attempt {
  readonly keys: readonly string[];
  /** The number of events in the body, repeated ones included. */
  readonly events: number;
  /** The keys whose callback was called. */
  readonly begun: Set<string>;
  handled: number;
  deadLettered: number;
}

/** The facts of a schedule, recorded outside of the inbox. */
class Facts extends Problems {
  readonly #isCalm: boolean;
  readonly #leases = new Map<string, Granted>();
  readonly #runs = new Set<Run>();
  readonly #timesRun = new Map<string, number>();
  readonly #timesFailed = new Map<string, number>();
  readonly #timesDone = new Map<string, number>();
  /** How often a troubled lease ended by its time, after which its key may be done once more. */
  readonly #excuses = new Map<string, number>();
  readonly #troubled = new Set<string>();

  /** @param isCalm - true if no call of the store fails or is late, and no receiver freezes or ends */
  constructor(isCalm: boolean) {
    super();
    this.#isCalm = isCalm;
  }

  /** A claim got the key, or renewed its lease. */
  grant(lease: Granted): void {
    const { key, token, receiver } = lease;
    if (lease.isTroubled) this.#troubled.add(key);
    const old = this.#leases.get(key);
    if (old?.token === token) return;
    if (old !== undefined) {
      old.isTakenOver = true;
      const wasUsed = [...this.#runs].some((run) => run.lease === old) || this.#timesDone.has(key);
      this.note(old.isTroubled || !wasUsed, () => `the lease of ${key} ended without any trouble`);
      count(this.#excuses, key);
    }
    this.#leases.set(key, lease);
    receiver.granted.push(lease);
  }

  /** The key is done, or released by its lease. */
  free(key: string, token?: string): void {
    if (token === undefined || this.#leases.get(key)?.token === token) this.#leases.delete(key);
  }

  /** A call with the key failed or was late, or the receiver froze or died. */
  trouble(key: string, receiver: Receiver): void {
    this.#troubled.add(key);
    const lease = this.#leases.get(key);
    if (lease?.receiver === receiver) lease.isTroubled = true;
  }

  /** A webhook leaves no lease behind if nothing disturbs it. */
  checkReleased(sent: Attempt): void {
    const held = [...this.#leases.values()].find((lease) => lease.sent === sent && !lease.isTroubled);
    this.note(held === undefined || !this.#isCalm, () => `${held?.key} stays leased after its webhook`);
  }

  /**
   * The events of a tracker are called oldest first, and the later events of a message wait while another delivery handles an
   * earlier one.
   */
  checkTurn(key: string, earlier: readonly string[], { begun }: Attempt): void {
    const tracker = key.slice(0, key.lastIndexOf(':'));
    const later = [...begun].find((other) => other.startsWith(tracker) && other > key);
    this.note(later === undefined, () => `a callback of ${key} after that of ${later}`);
    begun.add(key);
    // Otherwise an earlier event may have so many attempts that it comes last, or a lost lease.
    if (!this.#isCalm) return;
    const rival = [...this.#runs].find(
      ({ lease }) => !lease.isTroubled && earlier.includes(lease.key) && !begun.has(lease.key),
    );
    this.note(rival === undefined, () => `a callback of ${key} while that of ${rival?.lease.key} runs`);
  }

  start(key: string, receiver: Receiver, attempt: number): Run | undefined {
    count(this.#timesRun, key);
    const lease = receiver.granted.findLast((granted) => granted.key === key && granted.attempt <= attempt);
    this.note(lease !== undefined, () => `a callback of ${key} without a lease`);
    const rival = [...this.#runs].find((run) => run.lease.key === key && !run.lease.isTakenOver);
    this.note(rival === undefined, () => `two callbacks of ${key} at once`);
    if (lease === undefined) return undefined;
    // Without trouble, only failures count as attempts.
    const failures = this.#timesFailed.get(key) ?? 0;
    const isCounted = this.#troubled.has(key) || lease.attempt === failures + 1;
    this.note(isCounted, () => `attempt ${lease.attempt} of ${key} after ${failures} failures`);
    const run = { lease };
    this.#runs.add(run);
    return run;
  }

  /** A lease that ends and is taken again counts one more attempt. */
  checkAttempt(attempt: number, maxAttempts = attempt, keys: readonly string[]): void {
    const isExcused = attempt <= maxAttempts || keys.some((key) => this.#troubled.has(key));
    this.note(isExcused, () => `attempt ${attempt} of ${keys}`);
  }

  end(run: Run): void {
    this.#runs.delete(run);
  }

  endAll(receiver: Receiver): void {
    for (const run of this.#runs) if (run.lease.receiver === receiver) this.#runs.delete(run);
  }

  fail(key: string, maxAttempts = Number.POSITIVE_INFINITY): void {
    const times = count(this.#timesFailed, key);
    // If the store fails before `onDeadLetter`, the attempt is not counted.
    const isTooOften = times > maxAttempts && !this.#troubled.has(key);
    this.note(!isTooOften, () => `${key} failed ${times} times`);
  }

  /** A callback or `onDeadLetter` succeeded. */
  finish(key: string): void {
    const times = count(this.#timesDone, key);
    const excuses = this.#excuses.get(key) ?? 0;
    this.note(times <= 1 + excuses, () => `${key} was done ${times} times, and ${excuses} leases were lost`);
  }

  giveUp(key: string, maxAttempts: number): void {
    const times = this.#timesRun.get(key) ?? 0;
    const isEarly = times < maxAttempts && !this.#troubled.has(key);
    this.note(!isEarly, () => `${key} was given up after ${times} attempts`);
  }

  checkReport(report: WebhookReport, { keys, events, handled, deadLettered }: Attempt): void {
    const { duplicates, failures, busy, unavailable, interrupted } = report;
    const said = () => printed({ report, handled, deadLettered });
    this.note(report.handled === handled, () => `a wrong count of handled events: ${said()}`);
    this.note(report.deadLettered === deadLettered, () => `a wrong count of dead letters: ${said()}`);
    const open = [...failures.flatMap((failure) => failure.keys), ...busy, ...unavailable, ...interrupted];
    const total = report.handled + duplicates + report.deadLettered + open.length;
    this.note(total === events, () => `the counts are not those of ${events} events: ${said()}`);
    if (report.outcome === 'done') this.checkDone(keys);
  }

  checkDone(keys: readonly string[]): void {
    const lost = keys.filter((key) => !this.#timesDone.has(key));
    this.note(lost.length === 0, () => `acknowledged and never handled: ${lost}`);
  }
}

function count(counts: Map<string, number>, key: string): number {
  const times = (counts.get(key) ?? 0) + 1;
  counts.set(key, times);
  return times;
}

/** A process with a handler. */
class Receiver {
  readonly granted: Granted[] = [];
  awakeAt = 0;
  isDead = false;
  readonly handle: WebhookHandler;

  constructor(buildHandler: (receiver: Receiver) => WebhookHandler) {
    this.handle = buildHandler(this);
  }

  get isDown(): boolean {
    return this.isDead || this.awakeAt > performance.now();
  }

  /** Resolves when the process runs; never, if it is dead. */
  async awake(): Promise<void> {
    while (this.isDown) {
      if (this.isDead) await new Promise<never>(() => {});
      await pause(this.awakeAt - performance.now());
    }
  }
}

/** The calls that the receivers make to the store they share, each with a fate. */
class Connections {
  readonly #schedule: Schedule;
  readonly #facts: Facts;
  readonly #store = new MemoryDedupeStore();
  readonly #fates: Iterator<StoreFate>;
  readonly #keysUnderWay: string[] = [];

  constructor(schedule: Schedule, facts: Facts) {
    this.#schedule = schedule;
    this.#facts = facts;
    this.#fates = schedule.storeFates.values();
  }

  connect(receiver: Receiver, sent: Attempt | undefined): DedupeStore {
    // A release must not overtake an earlier call with the same token.
    const lastCalls = new Map<string, Promise<unknown>>();
    const inOrder = <Result>(token: string, run: () => Promise<Result>): Promise<Result> => {
      const last = lastCalls.get(token) ?? Promise.resolve();
      const call = last.then(run, run);
      lastCalls.set(token, call);
      return call;
    };
    const claim: DedupeStore['claim'] = (keys, options) => {
      const run = async (isTroubled: boolean) => {
        const claims = await this.#store.claim(keys, options);
        for (const [index, key] of keys.entries()) {
          const claim = claims[index];
          if (claim?.status !== 'acquired') continue;
          const { token } = options;
          const lease = { key, receiver, token, sent, attempt: claim.attempt, isTakenOver: false };
          this.#facts.grant({ ...lease, isTroubled: isTroubled || receiver.isDown });
        }
        return claims;
      };
      return this.#call(receiver, keys, run, (carryOut) => inOrder(options.token, carryOut));
    };
    const commit: DedupeStore['commit'] = (keys, options) => {
      const run = () => {
        for (const key of keys) this.#facts.free(key);
        return this.#store.commit(keys, options);
      };
      return this.#call(receiver, keys, run, (carryOut) => carryOut());
    };
    const release: DedupeStore['release'] = (keys, options) => {
      const run = () => {
        for (const key of keys) this.#facts.free(key, options.token);
        return this.#store.release(keys, options);
      };
      return this.#call(receiver, keys, run, (carryOut) => inOrder(options.token, carryOut));
    };
    const commandTimeoutMs = this.#schedule.ownsTimeLimit ? { commandTimeoutMs: COMMAND_TIMEOUT_MS } : {};
    return { ...commandTimeoutMs, claim, commit, release };
  }

  async #call<Result>(
    receiver: Receiver,
    keys: readonly string[],
    run: (isTroubled: boolean) => Promise<Result>,
    inOrder: (carryOut: () => Promise<Result>) => Promise<Result>,
  ): Promise<Result> {
    const isFrozen = receiver.isDown;
    await receiver.awake();
    const { ownsTimeLimit, delayMs } = this.#schedule;
    const { kind, ms } = this.#takeFate();
    const isTroubled = isFrozen || kind !== 'plain';
    if (isTroubled) for (const key of keys) this.#facts.trouble(key, receiver);
    const carryOut = async (): Promise<Result> => {
      this.#keysUnderWay.push(...keys);
      try {
        if (delayMs > 0) await pause(delayMs);
        if (kind === 'slow') await pause(ms);
        if (kind === 'hangs') await pause(60_000);
        const isRival = (key: string) => this.#keysUnderWay.filter((other) => other === key).length > 1;
        if (kind === 'refused' || kind === 'hangs' || (kind === 'conflict' && keys.some(isRival)))
          throw new Error(`the store: ${kind}`);
        return await run(isTroubled);
      } finally {
        for (const key of keys) this.#keysUnderWay.splice(this.#keysUnderWay.indexOf(key), 1);
      }
    };
    const answer = async (): Promise<Result> => {
      const reply = await inOrder(carryOut);
      if (delayMs > 0 || kind === 'lateReply') await pause(kind === 'lateReply' ? ms : delayMs);
      if (kind === 'lostReply') throw new Error('the store: lost the reply');
      return reply;
    };
    const replied = ownsTimeLimit ? limitTime(answer(), COMMAND_TIMEOUT_MS) : answer();
    return await replied.finally(() => receiver.awake());
  }

  #takeFate(): { readonly kind: StoreFate['kind'] | 'plain'; readonly ms: number } {
    const { value: fate } = this.#fates.next();
    if (fate === undefined || fate.share >= this.#schedule.faultShare) return { kind: 'plain', ms: 0 };
    return fate;
  }
}

function limitTime<Result>(call: Promise<Result>, ms: number): Promise<Result> {
  return Promise.race([
    call,
    pause(ms).then(() => {
      throw new Error('the store: took too long');
    }),
  ]);
}

/** Plays a schedule; rejects if a webhook got a 200 too early, or a rule about callbacks or reports was broken. */
async function play(input: Schedule): Promise<void> {
  const { leaseMs, isPerMessage, maxAttempts } = input;
  const facts = new Facts(input.faultShare === 0 && input.kills.length === 0);
  const connections = new Connections(input, facts);
  const callbackFates = input.callbackFates.values();
  const deadLetterFails = input.deadLetterFails.values();
  /** By `messageId`, which is another in each request. */
  const attempts = new Map<string, Attempt>();
  const findAttempt = (message: WebhookMessage) => attempts.get(String(message.metadata?.messageId));

  async function handleEvents(
    receiver: Receiver,
    keys: readonly string[],
    { attempt, signal }: Pick<EventContext, 'attempt' | 'signal'>,
    sent: Attempt | undefined,
  ): Promise<void> {
    const { tookMs, fails, heedsSignal } = callbackFates.next().value ?? {
      tookMs: 0,
      fails: false,
      heedsSignal: true,
    };
    facts.checkAttempt(attempt, maxAttempts, keys);
    const runs = keys.flatMap((key) => facts.start(key, receiver, attempt) ?? []);
    try {
      if (tookMs > 0) await pause(tookMs, heedsSignal ? signal : undefined);
      await receiver.awake();
      if (fails) throw new Error('a callback failed');
    } finally {
      for (const run of runs) facts.end(run);
    }
    for (const key of keys) facts.finish(key);
    if (sent !== undefined) sent.handled += keys.length;
  }

  async function takeDeadLetter(receiver: Receiver, { key, message }: DeadLetterContext): Promise<void> {
    await receiver.awake();
    facts.giveUp(key, maxAttempts ?? 0);
    if (deadLetterFails.next().value === true) throw new Error('a dead letter failed');
    facts.finish(key);
    const sent = findAttempt(message);
    if (sent !== undefined) sent.deadLettered += 1;
  }

  function buildInbox(receiver: Receiver, sent: Attempt | undefined): WebhookInbox {
    return new WebhookInbox({
      store: connections.connect(receiver, sent),
      leaseMs,
      onError: (_, { operation, keys }) => {
        if (operation === 'callback') for (const key of keys) facts.fail(key, maxAttempts);
      },
      maxAttempts,
      onDeadLetter:
        maxAttempts === undefined ? undefined : (_event, context) => takeDeadLetter(receiver, context),
    });
  }

  function buildHandler(receiver: Receiver): WebhookHandler {
    return createWebhookHandler({
      secret: SECRET,
      inbox: {
        process: async (...call) => {
          const [message] = parseWebhook(call[0]).messages;
          const sent = message && findAttempt(message);
          // An inbox for each request, so that its leases are known; an inbox remembers nothing itself.
          const report = await buildInbox(receiver, sent).process(...call);
          if (sent !== undefined) {
            facts.checkReport(report, sent);
            facts.checkReleased(sent);
          }
          return report;
        },
      },
      onRefused: (error) => facts.note(false, () => `refused: ${printed(error)}`),
      ...(isPerMessage
        ? {
            onEvents: (message, context) =>
              handleEvents(receiver, context.keys, context, findAttempt(message)),
          }
        : {
            onEvent: ({ eventId }, context) => {
              const { key, message } = context;
              const sent = findAttempt(message);
              const ids = message.events.map((event) => String(event.eventId));
              const earlier = ids.filter((id) => id < String(eventId));
              const { trackerId } = message.tracker;
              const keys = earlier.map((id) => buildKey(String(trackerId), id));
              if (sent !== undefined && context.attempt <= PUT_OFF_AFTER) facts.checkTurn(key, keys, sent);
              return handleEvents(receiver, [key], context, sent);
            },
          }),
    });
  }

  const receivers = Array.from({ length: input.receivers }, () => new Receiver(buildHandler));

  /** Sends a webhook until each of its copies gets a 200. */
  async function deliver(sent: Delivery): Promise<void> {
    const copies = Array.from({ length: sent.copies }, (_, copy) => ({
      ...sent,
      receiver: sent.receiver + copy,
    }));
    await Promise.all(copies.map(deliverOnce));
  }

  async function deliverOnce({ receiver: first, retryMs, trackings }: Delivery): Promise<void> {
    const keys = trackings.flatMap(([id, eventIds]) => eventIds.map((eventId) => buildKey(id, eventId)));
    for (let tries = 0; ; tries += 1) {
      const receiver = receivers[(first + tries) % receivers.length];
      const sent = { keys, events: keys.length, begun: new Set<string>(), handled: 0, deadLettered: 0 };
      const messageId = String(attempts.size);
      attempts.set(messageId, sent);
      const items = trackings.map(([id, eventIds]) => ({
        ...tracking(id, ...eventIds.map(toEvent)),
        metadata: { messageId, topic: 'tracking/events' },
      }));
      const respond = async () => {
        await receiver?.awake();
        const response = await receiver?.handle(post(payload(...items)));
        await receiver?.awake();
        return response?.status;
      };
      const status = await Promise.race([respond(), pause(SENDER_TIMEOUT_MS)]);
      if (status === 200) facts.checkDone(keys);
      facts.check();
      if (status === 200) return;
      await pause(retryMs);
    }
  }

  async function strike({ receiver: at, kind, ms }: Schedule['kills'][number]): Promise<void> {
    const index = at % receivers.length;
    const receiver = receivers[index];
    if (receiver === undefined) return;
    if (kind === 'close') {
      receivers[index] = new Receiver(buildHandler);
      return receiver.handle.close({ timeoutMs: ms });
    }
    if (kind === 'crash') receiver.isDead = true;
    else receiver.awakeAt = performance.now() + ms;
    for (const { key } of receiver.granted) facts.trouble(key, receiver);
    if (kind === 'freeze') return;
    facts.endAll(receiver);
    await pause(ms);
    receivers[index] = new Receiver(buildHandler);
  }

  await Promise.all([
    ...input.deliveries.map((sent) => pause(sent.atMs).then(() => deliver(sent))),
    ...input.kills.map((one) => pause(one.atMs).then(() => strike(one))),
  ]);
  // Redeliveries after the end find everything done.
  await Promise.all(input.deliveries.map(deliver));
}

/** The ids are in the order of the times. */
function toEvent(eventId: string) {
  return { eventId, occurrenceDatetime: `2026-03-04T0${eventId.slice(1)}:00:00Z` };
}

function buildKey(trackerId: string, eventId: string): string {
  return `tracking/events:${trackerId}:${eventId}`;
}

/**
 * Faults of the store, failing callbacks and lost receivers lose no event, and none is handled twice without a lost lease. Only
 * failures count as attempts. While the store works, no lease outlasts its webhook.
 */
export const webhookSchedules = scheduleProperty('webhook-schedules', 40, schedule, play, {
  limitMs: LIMIT_MS,
});

/** What the poller and the receivers have in common: a client, a count of what they do, and answers to the soak. */
import { existsSync, openSync, readdirSync, readlinkSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapCodeStatistics } from 'node:v8';
import { isTrackingError, TrackingClient } from '../../src/index.ts';
import { type RedisClient, RedisLimiter } from '../../src/redis/index.ts';
import { shiftWallClock } from '../fleet/shift-clock.ts';
import { MIB, usedHeapBytes } from '../scale/heap.ts';
import {
  type Command,
  type HeapUse,
  type Leftovers,
  type MemberMessage,
  type MemberTask,
  SENT_AT_HEADER,
  type Signal,
  steadyNow,
  TIMEOUT_MS,
  TOTAL_TIMEOUT_MS,
  wholeMiB,
} from './messages.ts';

const TICK_MS = 100;
/** Together as long as it takes from one fault to the next. */
const HEAP_LOOKS = 10;
const HEAP_LOOK_EVERY_MS = 700;
/** `fetch` keeps an idle connection for four seconds. */
const IDLE_SOCKETS_CLOSE_MS = 6_000;

const socketsAtStart = countSockets();
const timers = watchTimers();

// The soak writes this argument with `JSON.stringify` of a `MemberTask`.
export const task = JSON.parse(process.argv[2] ?? '') as MemberTask;
const journal = openSync(task.journal, 'a');
const counts = new Map<Signal, number>();
const rejected: Record<string, number> = {};
let [longestCallMs, givenUp] = [0, 0];

/** Written at once to the file, so that a SIGKILL right after cannot take it back. */
export function note(...words: readonly string[]): void {
  writeSync(journal, `${steadyNow().toFixed(1)} ${words.join(' ')}\n`);
}

export function count(signal: Signal): void {
  counts.set(signal, (counts.get(signal) ?? 0) + 1);
}

export function noteGivenUp(): void {
  givenUp += 1;
}

export function tell(message: MemberMessage): void {
  // Nobody listens any more when the soak was broken off; `disconnect` then ends this process.
  process.send?.(message, () => {});
}

/** A client as a service of several processes has it. */
export function makeClient(redis: RedisClient): TrackingClient {
  const { baseUrl, limitPerSecond, processes } = task;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  return new TrackingClient({
    baseUrl,
    apiKey: 'key-of-the-soak',
    limiter: new RedisLimiter({ redis, processes, logger }),
    rateLimit: { limits: { 'trackers.results': limitPerSecond } },
    timeoutMs: TIMEOUT_MS,
    logger,
    // Called when the limiter has been told that the request leaves.
    fetch: (input, init) => {
      // Not a copy: the signal would reach that by way of another one.
      if (input instanceof Request) input.headers.set(SENT_AT_HEADER, String(steadyNow()));
      return fetch(input, init);
    },
  });
}

/** Reads the results of one tracker after another, beside the polls, until the signal aborts. */
export async function keepCalling(client: TrackingClient, everyMs: number, signal: AbortSignal) {
  while (!signal.aborted) {
    const id = task.trackerIds[Math.floor(Math.random() * task.trackerIds.length)] ?? '';
    const startedAt = performance.now();
    try {
      await client.trackers.results(id, { totalTimeoutMs: TOTAL_TIMEOUT_MS });
      count('calls');
    } catch (error) {
      const name = isTrackingError(error) ? error.name : `not of this package: ${String(error)}`;
      rejected[name] = (rejected[name] ?? 0) + 1;
    }
    longestCallMs = Math.max(longestCallMs, performance.now() - startedAt);
    await sleep(everyMs);
  }
}

/** Answers the soak from now on; `close` ends all that the process began. */
export function answerCommands(own: { readonly drain?: () => Promise<void>; close(): Promise<void> }): void {
  const ticking = setInterval(() => {
    if (counts.size > 0) tell({ kind: 'tick', counts: Object.fromEntries(counts) });
    counts.clear();
  }, TICK_MS);
  const answer = async (command: Command): Promise<MemberMessage> => {
    switch (command.kind) {
      case 'heap':
        return { kind: 'heap', use: await lowestHeapUse() };
      case 'shift':
        shiftWallClock(command.byMs);
        return { kind: 'shifted' };
      case 'drain':
        await own.drain?.();
        return { kind: 'drained' };
      case 'finish':
        await own.close();
        clearInterval(ticking);
        await sleep(IDLE_SOCKETS_CLOSE_MS);
        return {
          kind: 'finished',
          calls: { rejected, longestCallMs, givenUp },
          leftovers: leftovers(),
        };
    }
  };
  process.on('message', async (command: Command) => {
    const answered = await answer(command);
    if (command.kind !== 'finish') return tell(answered);
    // From here on only what was left behind keeps the process alive.
    process.removeAllListeners('disconnect');
    process.send?.(answered, () => process.disconnect());
  });
  // A soak that dies leaves nobody behind.
  process.on('disconnect', () => process.exit(1));
}

/** What stays: calls under way, and those that wait for the end of an outage, come and go. */
async function lowestHeapUse(): Promise<HeapUse> {
  const looks: HeapUse[] = [];
  for (let look = 0; look < HEAP_LOOKS; look += 1) {
    const usedBytes = await usedHeapBytes();
    const { code_and_metadata_size, bytecode_and_metadata_size } = getHeapCodeStatistics();
    const codeBytes = code_and_metadata_size + bytecode_and_metadata_size;
    looks.push({ dataMiB: (usedBytes - codeBytes) / MIB, codeMiB: codeBytes / MIB });
    await sleep(HEAP_LOOK_EVERY_MS);
  }
  return looks.reduce((lowest, look) => (wholeMiB(look) < wholeMiB(lowest) ? look : lowest));
}

function leftovers(): Leftovers {
  return { timers: timers.size, sockets: countSockets() - socketsAtStart };
}

/** Sockets of this process, also those that do not keep it alive. */
function countSockets(): number {
  const folder = '/proc/self/fd';
  if (!existsSync(folder))
    return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  return readdirSync(folder).filter((name) => {
    try {
      return readlinkSync(`${folder}/${name}`).startsWith('socket:');
    } catch {
      // The folder's own descriptor is closed by now.
      return false;
    }
  }).length;
}

/** Every timer that is set and neither fired nor cleared, also one that does not keep the process alive. */
function watchTimers(): ReadonlySet<unknown> {
  const live = new Set<unknown>();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const watchedSet = (callback: (...given: unknown[]) => void, delayMs?: number, ...given: unknown[]) => {
    const timer = set(() => {
      live.delete(timer);
      callback(...given);
    }, delayMs);
    live.add(timer);
    return timer;
  };
  globalThis.setTimeout = Object.assign(watchedSet, set);
  globalThis.clearTimeout = (timer) => {
    live.delete(timer);
    clear(timer);
  };
  return live;
}

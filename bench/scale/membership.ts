import { TrackingClient } from '../../src/index.ts';
import type { Figure } from './case.ts';
import { usedHeapBytes } from './heap.ts';
import { real, type VirtualClock } from './virtual-clock.ts';

const CHANGES = 10_000;
const CYCLES = 20;
/** A hundred times as many trackers may make a change this much slower: the tree is 1.7 times as deep, and caches miss. */
const MOST_SLOWER = 5;
const MOST_LEAKED_BYTES = 16;

interface Cost {
  readonly addMicroseconds: number;
  readonly deleteMicroseconds: number;
  readonly leakedBytes: number;
}

function idsOf(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** What it costs to add and delete 10,000 ids while `size` others are polled. */
async function measure(clock: VirtualClock, size: number): Promise<Cost> {
  const fetch = () => Promise.reject(new Error('nothing is due in this bench'));
  const client = new TrackingClient({ baseUrl: 'https://tracking.test/v1', apiKey: 'bench', fetch });
  // Each id has an interval of its own, so that a change is somewhere in the middle of the heap.
  const intervalMs = ({ id }: { id: string }) => 1_200_000 + ((Number(id.split('-')[1]) * 7919) % 1_000_000);
  const stream = client.trackers.pollMany(idsOf(size, 'kept'), { intervalMs });
  const pending = stream.next();
  await clock.run(() => stream.size === size);

  const ids = idsOf(CHANGES, 'changed');
  const cycle = () => {
    const startedAt = real.now();
    for (const id of ids) stream.add(id);
    const addedAt = real.now();
    for (const id of ids) stream.delete(id);
    return { addMs: addedAt - startedAt, deleteMs: real.now() - addedAt };
  };
  // Tables that grow do so once, in the first cycles.
  for (let round = 0; round < CYCLES; round += 1) cycle();
  const heapBefore = await usedHeapBytes();
  const rounds = Array.from({ length: CYCLES }, cycle);
  const leakedBytes = ((await usedHeapBytes()) - heapBefore) / (CYCLES * CHANGES);
  await stream.return();
  await pending;
  const perChange = (ms: number) => (ms * 1000) / (CYCLES * CHANGES);
  return {
    addMicroseconds: perChange(rounds.reduce((sum, { addMs }) => sum + addMs, 0)),
    deleteMicroseconds: perChange(rounds.reduce((sum, { deleteMs }) => sum + deleteMs, 0)),
    leakedBytes,
  };
}

/** Compares the cost of a change among few and among many trackers. */
export async function measureMembership(clock: VirtualClock): Promise<Figure> {
  const sizes = [1000, 10_000, 100_000];
  const costs: Cost[] = [];
  // The first run pays for compiled code and caches.
  await measure(clock, 1000);
  for (const size of sizes) costs.push(await measure(clock, size));
  const [few, some, many] = costs;
  if (few === undefined || some === undefined || many === undefined) throw new Error('Expected three sizes');
  const slower = Math.max(
    many.addMicroseconds / few.addMicroseconds,
    many.deleteMicroseconds / few.deleteMicroseconds,
  );
  const leakedBytes = Math.max(...costs.map((cost) => cost.leakedBytes));
  const words = costs.map(
    ({ addMicroseconds, deleteMicroseconds }) =>
      `${addMicroseconds.toFixed(2)} / ${deleteMicroseconds.toFixed(2)} µs`,
  );
  return {
    name: 'adding / deleting 10,000 ids while 1,000, 10,000 and 100,000 others are polled',
    target: `O(log n): 100 times as many cost <= ${MOST_SLOWER} times as much; no leak`,
    isReached: slower <= MOST_SLOWER && leakedBytes <= MOST_LEAKED_BYTES,
    found: `${words.join(', ')} each; ${Math.max(0, leakedBytes).toFixed(2)} bytes left behind per change`,
    values: {
      slower,
      leakedBytes,
      addAmong1000Microseconds: few.addMicroseconds,
      deleteAmong1000Microseconds: few.deleteMicroseconds,
      addAmong10000Microseconds: some.addMicroseconds,
      deleteAmong10000Microseconds: some.deleteMicroseconds,
      addAmong100000Microseconds: many.addMicroseconds,
      deleteAmong100000Microseconds: many.deleteMicroseconds,
    },
  };
}

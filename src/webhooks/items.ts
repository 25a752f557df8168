import type { ItemOutcome, WorkItem } from './callbacks.ts';

/** The keys of items, in their order. */
export function keysOf(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

/** Whether nothing is known yet of what becomes of an item. */
export function isOpen({ outcome }: WorkItem): boolean {
  return outcome === undefined;
}

/** Whether an item is claimed, so that no other process works on it. */
export function isLeased({ claim }: WorkItem): boolean {
  return claim?.status === 'acquired';
}

/** What of items is ours to handle; what was done before is marked so. */
export function oursOf(items: readonly WorkItem[]): readonly WorkItem[] {
  const open = items.filter(isOpen);
  for (const item of open) if (item.claim?.status === 'done') item.outcome = 'duplicate';
  return open.filter(isLeased);
}

/** Gives items an outcome that have none yet. */
export function conclude(items: readonly WorkItem[], outcome: ItemOutcome): undefined {
  for (const item of items) item.outcome ??= outcome;
}

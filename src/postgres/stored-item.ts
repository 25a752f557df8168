import type { WorkItem } from '../webhooks/work-plan.ts';
import { storableKey } from './storable-key.ts';

/** An event or proof of delivery, with its key as the table has it. */
export interface StoredItem {
  readonly item: WorkItem;
  readonly stored: string;
}

/** Adds the stored form of the key. */
export function storedItem(item: WorkItem): StoredItem {
  return { item, stored: storableKey(item.key) };
}

/** The keys as everyone else knows them. */
export function keysOf(items: readonly StoredItem[]): string[] {
  return items.map(({ item }) => item.key);
}

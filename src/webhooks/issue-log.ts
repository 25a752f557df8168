import type { ValidationIssue } from '../common/validation.ts';

const MOST_ITEMS = 100;
const MOST_ISSUES_PER_ITEM = 20;

/** What is wrong with one item of a webhook. */
export interface ItemIssues {
  /** Its place in `trackings`; 0 for a body that is one item itself. */
  readonly index: number;
  /** The broken rules, the first 20 of an item; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

interface Entry {
  readonly index: number;
  readonly issues: ValidationIssue[];
  notListed: number;
}

/**
 * What is wrong with the items of one body: the first few items with their first few issues, and how many more there are.
 * Each byte of a body can break a rule, and an issue takes hundreds, so all of them would take more memory than there is.
 */
export class IssueLog {
  readonly #entries: Entry[] = [];
  #firstNotListed: number | undefined;
  #lastNotListed: number | undefined;
  #itemsNotListed = 0;

  /** Whether there is no room for more issues of an item, so that nobody needs to look for them. */
  isFull(index: number): boolean {
    const last = this.#entries.at(-1);
    if (last?.index === index) return last.issues.length >= MOST_ISSUES_PER_ITEM;
    return this.#entries.length >= MOST_ITEMS;
  }

  /** Items come in their order; `describe` is asked only when there is room. */
  add(index: number, describe: () => readonly ValidationIssue[]): void {
    const entry = this.#entryOf(index);
    if (entry === undefined) return;
    if (entry.issues.length >= MOST_ISSUES_PER_ITEM) entry.notListed += 1;
    else entry.issues.push(...describe());
  }

  list(): ItemIssues[] {
    const items: ItemIssues[] = this.#entries.map(({ index, issues, notListed }) => ({
      index,
      issues: notListed === 0 ? issues : [...issues, moreThan('issues', notListed)],
    }));
    if (this.#firstNotListed !== undefined) {
      const issues = [moreThan('items with issues', this.#itemsNotListed)];
      items.push({ index: this.#firstNotListed, issues });
    }
    return items;
  }

  #entryOf(index: number): Entry | undefined {
    const last = this.#entries.at(-1);
    if (last?.index === index) return last;
    if (this.#entries.length >= MOST_ITEMS) {
      if (this.#lastNotListed !== index) this.#itemsNotListed += 1;
      this.#firstNotListed ??= index;
      this.#lastNotListed = index;
      return undefined;
    }
    const entry = { index, issues: [], notListed: 0 };
    this.#entries.push(entry);
    return entry;
  }
}

function moreThan(what: string, count: number): ValidationIssue {
  return { path: [], code: 'not_listed', message: `Expected no more ${what}, got at least ${count} more` };
}

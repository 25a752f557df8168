import { formatPath, type ValidationIssue } from '../common/validation.ts';
import { WebhookParseError } from '../errors.ts';

/** What is wrong with one item of a webhook. */
export interface ItemIssues {
  /** Its place in `trackings`; 0 for a body that is one item itself. */
  readonly index: number;
  /** The broken rules, the first 20 of an item; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

const MAX_ITEMS = 100;
const MAX_ISSUES_PER_ITEM = 20;

/**
 * Collects the first issues of the first items of a body: every byte of a body can break a rule, and an issue takes hundreds of
 * bytes, so all of them would take more memory than there is.
 */
export class IssueList {
  readonly #issuesOfItem = new Map<number, ValidationIssue[]>();

  /** Whether there is no room for more issues of an item, so that nobody needs to look for them. */
  isFull(index: number): boolean {
    const issues = this.#issuesOfItem.get(index);
    if (issues !== undefined) return issues.length >= MAX_ISSUES_PER_ITEM;
    return this.#issuesOfItem.size >= MAX_ITEMS;
  }

  /** @param describe - is asked only when there is room */
  add(index: number, describe: () => readonly ValidationIssue[]): void {
    if (this.isFull(index)) return;
    const issues = this.#issuesOfItem.get(index) ?? [];
    this.#issuesOfItem.set(index, [...issues, ...describe()].slice(0, MAX_ISSUES_PER_ITEM));
  }

  list(): ItemIssues[] {
    return [...this.#issuesOfItem].map(([index, issues]) => ({ index, issues }));
  }
}

const MAX_ISSUES_TOLD = 3;

/** The error that tells of one item, with its first issues in its message. */
export function buildItemError(what: string, { index, issues }: ItemIssues): WebhookParseError {
  const messages = issues.slice(0, MAX_ISSUES_TOLD).map(({ message }) => message);
  if (issues.length > MAX_ISSUES_TOLD) messages.push(`and ${issues.length - MAX_ISSUES_TOLD} more`);
  return new WebhookParseError(`${what} ${index} of a webhook: ${messages.join('; ')}`);
}

/** The field that an issue is about, without the places in lists. */
export function getField({ path }: ValidationIssue): string {
  return formatPath(path.filter((key) => typeof key === 'string'));
}

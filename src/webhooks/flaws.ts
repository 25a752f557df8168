// Specification: service.md 6; public contract
import { formatPath, type ValidationIssue } from '../common/validation.ts';
import { WebhookParseError } from '../errors.ts';

/** What is wrong with one item of a webhook. */
export interface ItemIssues {
  /** Its place in `trackings`; 0 for a body that is one item itself. */
  readonly index: number;
  /** The broken rules, the first 20 of an item; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

const MOST_ITEMS = 100;
const MOST_ISSUES_PER_ITEM = 20;

/**
 * What is wrong with the items of one body: the first few items with their first few issues, and how many more there are.
 * Each byte of a body can break a rule, and an issue takes hundreds, so all of them would take more memory than there is.
 */
export class IssueLog {
  readonly #entries: { readonly index: number; readonly issues: ValidationIssue[]; notListed: number }[] = [];
  /** The items there was no room for. */
  #more: { readonly first: number; last: number; count: number } | undefined;

  /** Whether there is no room for more issues of an item, so that nobody needs to look for them. */
  isFull(index: number): boolean {
    const last = this.#entries.at(-1);
    if (last?.index === index) return last.issues.length >= MOST_ISSUES_PER_ITEM;
    return this.#entries.length >= MOST_ITEMS;
  }

  /** Items come in their order; `describe` is asked only when there is room. */
  add(index: number, describe: () => readonly ValidationIssue[]): void {
    let entry = this.#entries.at(-1);
    if (entry?.index !== index) {
      if (this.#entries.length >= MOST_ITEMS) {
        this.#noteItem(index);
        return;
      }
      entry = { index, issues: [], notListed: 0 };
      this.#entries.push(entry);
    }
    const room = MOST_ISSUES_PER_ITEM - entry.issues.length;
    const issues = room > 0 ? describe() : undefined;
    entry.issues.push(...(issues?.slice(0, room) ?? []));
    entry.notListed += issues === undefined ? 1 : Math.max(0, issues.length - room);
  }

  #noteItem(index: number): void {
    if (this.#more?.last === index) return;
    this.#more = { first: this.#more?.first ?? index, last: index, count: (this.#more?.count ?? 0) + 1 };
  }

  list(): ItemIssues[] {
    const items: ItemIssues[] = this.#entries.map(({ index, issues, notListed }) => ({
      index,
      issues: notListed === 0 ? issues : [...issues, moreThan('issues', notListed)],
    }));
    if (this.#more !== undefined) {
      const { first, count } = this.#more;
      items.push({ index: first, issues: [moreThan('items with issues', count)] });
    }
    return items;
  }
}

function moreThan(what: string, count: number): ValidationIssue {
  return { path: [], code: 'not_listed', message: `Expected no more ${what}, got at least ${count} more` };
}

/** Enough to find the cause, and short enough for one line of a log. */
const MOST_FLAWS_NAMED = 3;

interface Flaw {
  /** The field, without the places in lists. */
  readonly field: string;
  readonly text: string;
}

/** Notifies of what in the webhooks of an inbox is not what it should be: a report may reach nobody. */
export class FlawReporter {
  readonly #notify: (error: WebhookParseError) => void;
  readonly #knownFields = new Set<string>();

  constructor(notify: (error: WebhookParseError) => void) {
    this.#notify = notify;
  }

  report(rejected: readonly ItemIssues[], mismatched: readonly ItemIssues[]): void {
    if (rejected.length > 0) this.#describe('Rejected items of a webhook', flawsOf(rejected));
    if (mismatched.length === 0) return;
    // Once a field: when the service changes one, every webhook has it from then on.
    const newFlaws = new Map(flawsOf(mismatched).map((flaw) => [flaw.field, flaw]));
    for (const field of this.#knownFields) newFlaws.delete(field);
    if (newFlaws.size === 0) return;
    for (const field of [...newFlaws.keys()].slice(0, MOST_FLAWS_NAMED)) this.#knownFields.add(field);
    this.#describe('Kept fields of a webhook as they came', [...newFlaws.values()]);
  }

  #describe(what: string, flaws: readonly Flaw[]): void {
    const texts = flaws.slice(0, MOST_FLAWS_NAMED).map(({ text }) => text);
    if (flaws.length > MOST_FLAWS_NAMED) texts.push('and more');
    this.#notify(new WebhookParseError(`${what}: ${texts.join('; ')}`));
  }
}

function flawsOf(items: readonly ItemIssues[]): Flaw[] {
  return items.flatMap(({ index, issues }) =>
    issues.map(({ path, message }) => ({
      field: formatPath(path.filter((key) => typeof key === 'string')),
      text: `[${index}] ${message}`,
    })),
  );
}

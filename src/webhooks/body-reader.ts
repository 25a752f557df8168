import { formatPath } from '../common/validation.ts';
import { WebhookParseError } from '../errors.ts';
import type { ItemIssues } from './issue-log.ts';
import { type ParsedWebhook, parseWebhook } from './parse.ts';
import type { RunSettings } from './run-options.ts';

/** Enough to find the cause, and short enough for one line of a log. */
const MOST_TOLD = 3;

interface Flaw {
  /** The field, without the places in lists. */
  readonly field: string;
  readonly text: string;
}

/** Parses the bodies of an inbox, and tells what in them is not what it should be: a report may reach nobody. */
export class BodyReader {
  readonly #onError: RunSettings<unknown>['onError'];
  readonly #toldFields = new Set<string>();

  constructor({ onError }: Pick<RunSettings<unknown>, 'onError'>) {
    this.#onError = onError;
  }

  /** Throws WebhookParseError when the body is not UTF-8 JSON. */
  read(payload: unknown): ParsedWebhook {
    const parsed = parseWebhook(payload);
    const { rejected, mismatched } = parsed;
    if (rejected.length > 0) this.#tell('Rejected items of a webhook', flawsOf(rejected));
    if (mismatched.length > 0) this.#tellNew(flawsOf(mismatched));
    return parsed;
  }

  /** Once a field: when the service changes one, every webhook has it from then on. */
  #tellNew(flaws: readonly Flaw[]): void {
    const news = new Map(flaws.map((flaw) => [flaw.field, flaw]));
    for (const field of this.#toldFields) news.delete(field);
    if (news.size === 0) return;
    for (const field of [...news.keys()].slice(0, MOST_TOLD)) this.#toldFields.add(field);
    this.#tell('Kept fields of a webhook as they came', [...news.values()]);
  }

  #tell(what: string, flaws: readonly Flaw[]): void {
    const texts = flaws.slice(0, MOST_TOLD).map(({ text }) => text);
    if (flaws.length > MOST_TOLD) texts.push('and more');
    this.#onError(new WebhookParseError(`${what}: ${texts.join('; ')}`), { operation: 'parse', keys: [] });
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

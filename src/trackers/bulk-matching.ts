import { canonicalJson } from '../common/canonical-json.ts';
import type { BulkItem } from '../schemas/bulk.ts';
import { isJsonObject } from '../schemas/envelope.ts';
import type { TrackerInput } from '../schemas/tracker.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The fields that come back as they were sent, and so tell two inputs apart for certain (service.md 2.1, 2.2). */
const IDENTIFYING_FIELDS = ['trackingNumber', 'clientTrackerId', 'shipmentReference'] as const;

/** A value in the form it is compared; null and an empty string say as little as a missing field. */
function comparable(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const text = typeof value === 'string' ? value.trim() : canonicalJson(value);
  return field === 'trackingNumber' ? text.toUpperCase() : text;
}

/** An input as text that is equal for inputs the service can't tell apart. */
function contentOf(input: Fields): string {
  const fields = Object.entries(input).map(([field, value]) => [field, comparable(field, value)]);
  return canonicalJson(Object.fromEntries(fields));
}

/** What an item of the answer says about the input it is for. */
interface Statement {
  /** The input as the service read it. */
  readonly echo: Fields;
  readonly tracker: Fields;
}

function statementOf({ inputData, tracker }: BulkItem): Statement {
  const echo = typeof inputData === 'string' ? { trackingNumber: inputData } : inputData;
  return { echo: isJsonObject(echo) ? echo : {}, tracker: isJsonObject(tracker) ? tracker : {} };
}

/** True when the answer names the input by an identifier, and says nothing that contradicts it. */
function isAbout({ echo, tracker }: Statement, input: Fields): boolean {
  let isNamed = false;
  for (const field of IDENTIFYING_FIELDS) {
    const own = comparable(field, input[field]);
    const echoed = comparable(field, echo[field]);
    const stored = comparable(field, tracker[field]);
    if (echoed !== undefined && echoed !== own) return false;
    // A tracker may have a value that this input left out: it can be an older one.
    if (own !== undefined && stored !== undefined && stored !== own) return false;
    const isSame = own !== undefined && (echoed === own || stored === own);
    if (isSame && field !== 'shipmentReference') isNamed = true;
  }
  return isNamed;
}

/** How much an input resembles an echo: the echoed fields that agree, minus those that do not. */
function resemblance({ echo }: Statement, input: Fields): number {
  let score = 0;
  for (const [field, value] of Object.entries(echo)) {
    const echoed = comparable(field, value);
    if (echoed !== undefined) score += comparable(field, input[field]) === echoed ? 1 : -1;
  }
  return score;
}

/** The inputs of one chunk that have no item yet, found by what an item names. */
class OpenInputs {
  readonly #inputs: readonly Fields[];
  readonly #open: Set<number>;
  readonly #indexesOf = new Map<string, number[]>();

  constructor(inputs: readonly Fields[]) {
    this.#inputs = inputs;
    this.#open = new Set(inputs.keys());
    for (const [index, input] of inputs.entries()) {
      for (const name of namesOf(input)) {
        const named = this.#indexesOf.get(name);
        if (named === undefined) this.#indexesOf.set(name, [index]);
        else named.push(index);
      }
    }
  }

  /** Takes the input that the statement is about; undefined when there is none, or no telling which of several. */
  take(statement: Statement): number | undefined {
    const [name] = [...namesOf(statement.echo), ...namesOf(statement.tracker)];
    const named = name === undefined ? [] : (this.#indexesOf.get(name) ?? []);
    const candidates = named.filter((index) => this.#open.has(index) && isAbout(statement, this.#at(index)));
    const best = candidates.length > 1 ? this.#mostAlike(statement, candidates) : candidates;
    const [first] = best;
    if (first === undefined || !this.#areTwins(best)) return undefined;
    this.#open.delete(first);
    return first;
  }

  #at(index: number): Fields {
    return this.#inputs[index] ?? {};
  }

  #mostAlike(statement: Statement, candidates: readonly number[]): number[] {
    const scores = candidates.map((index) => resemblance(statement, this.#at(index)));
    const best = Math.max(...scores);
    return candidates.filter((_, place) => scores[place] === best);
  }

  /** True when it makes no difference which of the inputs is taken. */
  #areTwins(candidates: readonly number[]): boolean {
    return (
      candidates.length === 1 || new Set(candidates.map((index) => contentOf(this.#at(index)))).size === 1
    );
  }
}

function namesOf(fields: Fields): string[] {
  return ['trackingNumber', 'clientTrackerId'].flatMap((field) => {
    const value = comparable(field, fields[field]);
    return value === undefined ? [] : [`${field} ${value}`];
  });
}

/**
 * Finds the item of a bulk answer that is about each input, by what the item says: the echoed input and the tracker.
 * The service may answer in another order, or about fewer items; a place in the list proves nothing.
 *
 * @returns for each input its item; undefined where no item, or no single one, can be told to be about it
 */
export function matchItems(
  inputs: readonly TrackerInput[],
  items: readonly BulkItem[],
): (BulkItem | undefined)[] {
  const matched: (BulkItem | undefined)[] = inputs.map(() => undefined);
  const open = new OpenInputs(inputs);
  let rest = items.map((item) => ({ item, statement: statementOf(item) }));
  for (let before = -1; before !== rest.length; ) {
    before = rest.length;
    // Each match leaves fewer candidates to the items that could not be told yet.
    rest = rest.filter(({ item, statement }) => {
      const index = open.take(statement);
      if (index === undefined) return true;
      matched[index] = item;
      return false;
    });
  }
  return matched;
}

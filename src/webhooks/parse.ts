import * as z from 'zod';
import {
  compileWhenHot,
  errorMap,
  formatPath,
  isJsonObject,
  kindOf,
  MAX_ISSUES,
  toValidationIssues,
  type ValidationIssue,
} from '../common/validation.ts';
import { WebhookParseError } from '../errors.ts';
import { buildEventKeys, buildProofOfDeliveryKey, EVENTS_TOPIC } from '../events/keys.ts';
import {
  eventsMessageSchema,
  otherMessageSchema,
  PROOF_OF_DELIVERY_TOPIC,
  proofOfDeliverySchema,
  type WebhookEvent,
  type WebhookMessage,
  webhookEventSchema,
  webhookTrackerSchema,
} from '../schemas/webhook.ts';

/** The issues of one item of a webhook. */
export interface ItemIssues {
  /** The item's position in `trackings`; 0 in a body of the flat shape. */
  readonly index: number;
  /** The first 20 broken rules; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

/** The content of a webhook body. */
export interface ParsedWebhook {
  /** The items that can be handled, without repeats of events and proofs of delivery. */
  readonly messages: WebhookMessage[];
  /** The number of repeats inside the body; `WebhookInbox` also finds repeats of other bodies. */
  readonly duplicates: number;
  /** The first 100 items that are invalid or hold invalid events; the valid events of such an item are in `messages`. */
  readonly rejected: ItemIssues[];
  /** The first 100 messages with fields that break the schema. Such fields keep their values, even of another type. */
  readonly mismatched: ItemIssues[];
}

/**
 * Reads a webhook body of the enveloped shape (`trackings[]`) or the flat shape (docs/service.md 8.2), and checks each
 * item by itself; unknown fields and topics are kept.
 *
 * @param body - text, UTF-8 bytes, or JSON that is parsed already
 * @returns the messages, the invalid items, and the fields that break the schema
 * @throws WebhookParseError when text or bytes are not UTF-8 JSON, or hold more than 250,000 objects
 * @example
 * const { messages, rejected } = parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}');
 * // messages: [{ kind: 'events', tracker: { trackerId: 't1' }, events: [{ eventId: 'e1' }], … }], rejected: []
 */
export function parseWebhook(body: unknown): ParsedWebhook {
  const payload = decodeBody(body);
  const reader = new ItemReader();
  if (!isJsonObject(payload)) {
    reader.reject(0, 'body', 'an object', payload);
  } else if (!Object.hasOwn(payload, 'trackings')) {
    reader.read(payload, 0);
  } else if (!Array.isArray(payload['trackings'])) {
    reader.reject(0, 'trackings', 'an array', payload['trackings']);
  } else {
    for (const [index, item] of payload['trackings'].entries()) reader.read(item, index);
  }
  return reader.finish();
}

const BYTE_ORDER_MARK = 0xfeff;
// Invalid bytes throw, because replacement characters could make two ids the same. The decoder drops a byte order mark.
const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeBody(body: unknown): unknown {
  if (typeof body === 'string') {
    return parseJson(body.charCodeAt(0) === BYTE_ORDER_MARK ? body.slice(1) : body);
  }
  if (!(body instanceof ArrayBuffer || ArrayBuffer.isView(body))) return body;
  let text: string;
  try {
    text = utf8.decode(body);
  } catch (error) {
    throw new WebhookParseError('Expected `body` to be UTF-8, got invalid bytes', { cause: error });
  }
  return parseJson(text);
}

/** Webhooks hold far fewer objects. Parsing millions of empty objects would block the event loop for seconds. */
const MAX_OBJECTS = 250_000;

function parseJson(text: string): unknown {
  // Each object takes at least one character, so a short text need not be searched.
  if (text.length > MAX_OBJECTS && countObjects(text) > MAX_OBJECTS) {
    throw new WebhookParseError(`Expected \`body\` to hold at most ${MAX_OBJECTS} objects, got more`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WebhookParseError(`Expected \`body\` to be JSON, got ${kindOf(text)}`, { cause: error });
  }
}

function countObjects(text: string): number {
  let count = 0;
  for (let at = text.indexOf('{'); at !== -1 && count <= MAX_OBJECTS; at = text.indexOf('{', at + 1)) {
    count += 1;
  }
  return count;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Each event is checked alone: one bad event must not reject the others. */
const envelopeSchema = eventsMessageSchema.extend({ events: z.array(z.unknown()) });

/** Rejects only items without a valid key, because the service repeats a rejected push for six days (docs/service.md 8.5). */
class ItemReader {
  readonly #messages: WebhookMessage[] = [];
  readonly #keys = new Set<string>();
  #duplicates = 0;
  readonly #rejected = new IssueList();
  readonly #mismatched = new IssueList();

  read(sent: unknown, index: number): void {
    if (!isJsonObject(sent)) {
      this.reject(index, `trackings[${index}]`, 'an object', sent);
      return;
    }
    // `kind` is a field that this package adds, so ignore a `kind` that the service may send some day.
    const item = Object.hasOwn(sent, 'kind') ? { ...sent, kind: undefined } : sent;
    const topic = getTopic(item);
    if (topic === PROOF_OF_DELIVERY_TOPIC) this.#readProofOfDelivery(withTracker(item), index);
    else if (topic === undefined || topic === EVENTS_TOPIC) this.#readEventsMessage(withTracker(item), index);
    else this.#messages.push({ ...this.#checked(otherMessageSchema, item, index), kind: 'other' });
  }

  reject(index: number, name: string, wanted: string, got: unknown): void {
    this.#rejected.add(index, () => {
      const message = `Expected \`${name}\` to be ${wanted}, got ${kindOf(got)}`;
      return [{ path: [], code: 'invalid_type', message }];
    });
  }

  finish(): ParsedWebhook {
    return {
      messages: this.#messages,
      duplicates: this.#duplicates,
      rejected: this.#rejected.list(),
      mismatched: this.#mismatched.list(),
    };
  }

  #readProofOfDelivery(item: JsonObject, index: number): void {
    if (!hasTrackerId(item) || !isJsonObject(item['data'])) {
      this.#rejected.add(index, () => findItemIssues(proofOfDeliverySchema, item));
      return;
    }
    const checked = this.#checked(proofOfDeliverySchema, item, index);
    const message = { ...checked, kind: 'proofOfDelivery' as const };
    if (this.#isNew(buildProofOfDeliveryKey(message))) this.#messages.push(message);
  }

  #readEventsMessage(item: JsonObject, index: number): void {
    const { metadata, events: sent } = item;
    const isNamed = !isJsonObject(metadata) || isText(metadata['topic']);
    if (!isNamed || !hasTrackerId(item) || !Array.isArray(sent)) {
      this.#rejected.add(index, () => findItemIssues(envelopeSchema, item));
      return;
    }
    const envelope = this.#checked(envelopeSchema, item, index);
    const events = this.#readEvents(sent, index);
    if (events.length === 0 && sent.length > 0) return;
    const buildKey = buildEventKeys(envelope);
    const newEvents = events.filter((event) => this.#isNew(buildKey(event)));
    this.#messages.push({ ...envelope, kind: 'events', events: newEvents });
  }

  #readEvents(sent: readonly unknown[], index: number): WebhookEvent[] {
    const events: WebhookEvent[] = [];
    for (const [position, event] of sent.entries()) {
      if (isJsonObject(event) && isText(event['eventId'])) {
        events.push(this.#checked(webhookEventSchema, event, index, position));
      } else {
        this.#rejected.add(index, () => findIssues(webhookEventSchema, event, position));
      }
    }
    return events;
  }

  #isNew(key: string): boolean {
    if (this.#keys.has(key)) {
      this.#duplicates += 1;
      return false;
    }
    this.#keys.add(key);
    return true;
  }

  #checked<Schema extends z.ZodType>(
    schema: Schema,
    sent: JsonObject,
    index: number,
    position?: number,
  ): z.output<Schema> {
    if (!this.#mismatched.isFull(index)) {
      const result = compileWhenHot(schema).safeParse(sent);
      if (result.success) return result.data;
      this.#mismatched.add(index, () => findIssues(schema, sent, position));
    }
    // Sound for the checked fields of the key. Other fields stay as they came, because the service does not promise their form.
    return { ...sent } as z.output<Schema>;
  }
}

function getTopic({ metadata }: JsonObject): string | undefined {
  const topic = isJsonObject(metadata) ? metadata['topic'] : undefined;
  return typeof topic === 'string' && topic !== '' ? topic : undefined;
}

/** In the flat shape the ids stand beside the events (docs/service.md 8.2). */
function withTracker(item: JsonObject): JsonObject {
  const isFlat = Object.hasOwn(item, 'trackerId') || Object.hasOwn(item, 'clientTrackerId');
  if (isJsonObject(item['tracker']) || !isFlat) return item;
  const known = Object.keys(webhookTrackerSchema.shape).filter((key) => Object.hasOwn(item, key));
  return { ...item, tracker: Object.fromEntries(known.map((key) => [key, item[key]])) };
}

function hasTrackerId({ tracker }: JsonObject): boolean {
  if (!isJsonObject(tracker)) return false;
  return typeof tracker['trackerId'] === 'string' || typeof tracker['clientTrackerId'] === 'string';
}

/** Also reports a tracker without either id, because the schema cannot express that rule (docs/service.md 8.10). */
function findItemIssues(schema: z.ZodType, item: JsonObject): ValidationIssue[] {
  const issues = findIssues(schema, item);
  const { tracker } = item;
  if (!isJsonObject(tracker) || (tracker['trackerId'] ?? tracker['clientTrackerId'] ?? null) !== null)
    return issues;
  const message = 'Expected `tracker` to have a `trackerId` or a `clientTrackerId`, got neither';
  return [{ path: ['tracker'], code: 'invalid_type', message }, ...issues];
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string';
}

function findIssues(schema: z.ZodType, sent: unknown, position?: number): ValidationIssue[] {
  const at = position === undefined ? [] : ['events', position];
  const inWords = errorMap('tracking');
  const { error } = schema.safeParse(sent, {
    error: (issue) => inWords({ ...issue, path: [...at, ...(issue.path ?? [])] }),
  });
  if (error === undefined) return [];
  return toValidationIssues(error).map((issue) => ({ ...issue, path: [...at, ...issue.path] }));
}

const MAX_ITEMS_WITH_ISSUES = 100;

/** Keeps the first issues of the first items, because all issues of a body could fill the memory. */
class IssueList {
  readonly #issuesOfItem = new Map<number, ValidationIssue[]>();

  isFull(index: number): boolean {
    const issues = this.#issuesOfItem.get(index);
    if (issues !== undefined) return issues.length >= MAX_ISSUES;
    return this.#issuesOfItem.size >= MAX_ITEMS_WITH_ISSUES;
  }

  add(index: number, describe: () => readonly ValidationIssue[]): void {
    if (this.isFull(index)) return;
    const issues = this.#issuesOfItem.get(index) ?? [];
    this.#issuesOfItem.set(index, [...issues, ...describe()].slice(0, MAX_ISSUES));
  }

  list(): ItemIssues[] {
    return [...this.#issuesOfItem].map(([index, issues]) => ({ index, issues }));
  }
}

const MAX_ISSUES_TOLD = 3;

export function buildItemError(what: string, { index, issues }: ItemIssues): WebhookParseError {
  const messages = issues.slice(0, MAX_ISSUES_TOLD).map(({ message }) => message);
  if (issues.length > MAX_ISSUES_TOLD) messages.push(`and ${issues.length - MAX_ISSUES_TOLD} more`);
  return new WebhookParseError(`${what} ${index} of a webhook: ${messages.join('; ')}`);
}

/** Returns the path of an issue without positions in lists. */
export function getField({ path }: ValidationIssue): string {
  return formatPath(path.filter((key) => typeof key === 'string'));
}

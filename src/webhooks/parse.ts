import * as z from 'zod';
import { buildEventKey, buildProofOfDeliveryKey, EVENTS_TOPIC } from '../common/event-keys.ts';
import { isArrayBuffer, isPromise, readError } from '../common/foreign.ts';
import { errorMap, formatPath, kindOf, PROMISE_RULE } from '../common/messages.ts';
import {
  isJsonObject,
  MAX_ISSUES,
  safeParse,
  toValidationIssues,
  type ValidationIssue,
} from '../common/parsing.ts';
import { WebhookParseError } from '../errors.ts';
import { type WebhookEvent, webhookEventSchema } from '../schemas/event.ts';
import { webhookTrackerSchema } from '../schemas/tracker.ts';
import {
  eventsMessageSchema,
  type OtherMessage,
  otherMessageSchema,
  PROOF_OF_DELIVERY_TOPIC,
  type ProofOfDelivery,
  proofOfDeliverySchema,
  type WebhookMessage,
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
  /** The items that can be handled, without duplicates of events and proofs of delivery. */
  readonly messages: WebhookMessage[];
  /** The number of duplicates inside the body; `WebhookInbox` also finds events that came in another body. */
  readonly duplicates: number;
  /** The first 100 items that are invalid or contain invalid events; the valid events of such an item are in `messages`. */
  readonly rejected: ItemIssues[];
  /** The first 100 messages with fields that break the schema. Such fields keep their values, even if their type is wrong. */
  readonly mismatched: ItemIssues[];
}

/**
 * Reads a webhook body of the enveloped shape (`trackings[]`) or the flat shape (docs/service.md 8.2), and checks each
 * item by itself; unknown fields and topics are kept.
 *
 * @param body - text, UTF-8 bytes, or JSON that is parsed already
 * @returns the messages, the invalid items, and the fields that break the schema
 * @throws WebhookParseError when text or bytes are not UTF-8 JSON, or when the body is a Promise
 * @example
 * const { messages, rejected } = parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}');
 * // messages: [{ kind: 'events', tracker: { trackerId: 't1' }, events: [{ eventId: 'e1' }], … }], rejected: []
 */
export function parseWebhook(body: unknown): ParsedWebhook {
  const reader = new ItemReader();
  reader.readBody(decodeBody(body));
  const { messages, duplicates, rejected, mismatched } = reader;
  return { messages: messages.map(({ message }) => message), duplicates, rejected, mismatched };
}

/** A message and the key of each of its events, or of its proof of delivery; none for other messages. */
export interface KeyedMessage<Message extends WebhookMessage = WebhookMessage> {
  readonly message: Message;
  readonly keys: readonly string[];
}

const BYTE_ORDER_MARK = 0xfeff;
// Invalid bytes throw, because replacement characters could make two ids the same.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses text and UTF-8 bytes; returns other values as they are.
 *
 * @throws WebhookParseError when text or bytes are not UTF-8 JSON
 */
export function decodeBody(body: unknown): unknown {
  refusePromise('body', body);
  const text = isArrayBuffer(body) || ArrayBuffer.isView(body) ? decodeText(body) : body;
  let value = typeof text === 'string' ? parseJson(text) : text;
  // A JSON text can contain another one. If a framework has parsed the outer text, only the inner one is left. So parse both: the
  // body then gets the same response whether a framework has parsed it or not.
  while (typeof value === 'string') {
    try {
      value = parseJson(value);
    } catch {
      return value;
    }
  }
  return value;
}

/** @throws WebhookParseError if somebody forgot an `await` */
export function refusePromise(name: string, value: unknown): void {
  if (isPromise(value)) throw new WebhookParseError(`\`${name}\` ${PROMISE_RULE}`);
}

function decodeText(bytes: ArrayBuffer | SharedArrayBuffer | ArrayBufferView): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new WebhookParseError('Expected `body` to be UTF-8, got invalid bytes', { cause: error });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
  } catch (error) {
    throw new WebhookParseError(`\`body\` (${kindOf(text)}) is not valid JSON`, { cause: error });
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Each event is checked alone: one bad event must not reject the others. */
const envelopeSchema = eventsMessageSchema.extend({ events: z.array(z.unknown()) });

type CompleteItem = (item: JsonObject) => JsonObject;

/**
 * Reads the items of a body, and builds the keys under which their contents are remembered. Rejects only items without a valid key,
 * because the service redelivers a rejected push for six days (docs/service.md 8.5).
 */
export class ItemReader {
  readonly messages: KeyedMessage[] = [];
  readonly rejected: ItemIssues[] = [];
  readonly mismatched: ItemIssues[] = [];
  duplicates = 0;
  /** Names an item in messages by its index. */
  nameItem: (index: number) => string = () => 'A webhook';
  readonly #keys = new Set<string>();
  readonly #account: string | undefined;

  constructor(account?: string) {
    this.#account = account;
  }

  /**
   * Reads a decoded body of either shape.
   *
   * @param push - for the body of a push of a history: its position, and a function that adds to its items what the history left out
   */
  readBody(body: unknown, push?: { readonly index: number; readonly complete: CompleteItem }): void {
    const read = (item: unknown, index: number, name?: string) =>
      this.read(
        push !== undefined && isJsonObject(item) ? push.complete(item) : item,
        push?.index ?? index,
        name,
      );
    if (!isJsonObject(body) || !Object.hasOwn(body, 'trackings')) {
      read(body, 0);
    } else if (!Array.isArray(body['trackings'])) {
      this.reject(push?.index ?? 0, 'trackings', 'an array', body['trackings']);
    } else {
      if (push === undefined) this.nameItem = (index) => `\`trackings[${index}]\` of a webhook`;
      for (const [index, item] of body['trackings'].entries()) read(item, index, `trackings[${index}]`);
    }
  }

  /** @param name - names the item in the message if it is not an object */
  read(sent: unknown, index: number, name = 'body'): void {
    if (!isJsonObject(sent)) {
      this.reject(index, name, 'an object', sent);
      return;
    }
    // `kind` is a field that this package adds, so ignore a `kind` that the service may send some day.
    const item = Object.hasOwn(sent, 'kind') ? { ...sent, kind: undefined } : sent;
    const topic = getTopic(item);
    if (topic === PROOF_OF_DELIVERY_TOPIC) this.#readProofOfDelivery(withTracker(item), index);
    else if (topic === undefined || topic === EVENTS_TOPIC) this.#readEventsMessage(withTracker(item), index);
    else {
      const message: OtherMessage = { ...this.#checked(otherMessageSchema, item, index), kind: 'other' };
      this.messages.push({ message, keys: [] });
    }
  }

  reject(index: number, name: string, wanted: string, got: unknown): void {
    addIssues(this.rejected, index, () => {
      const message = `Expected \`${name}\` to be ${wanted}, got ${kindOf(got)}`;
      return [{ path: [], code: 'invalid_type', message }];
    });
  }

  #readProofOfDelivery(item: JsonObject, index: number): void {
    if (!hasTrackerId(item) || !isJsonObject(item['data'])) {
      addIssues(this.rejected, index, () => findItemIssues(proofOfDeliverySchema, item));
      return;
    }
    const checked = this.#checked(proofOfDeliverySchema, item, index);
    const message: ProofOfDelivery = { ...checked, kind: 'proofOfDelivery' };
    const key = buildKeyIfPossible(() => buildProofOfDeliveryKey(message, this.#account));
    if (key === undefined) this.reject(index, 'data', 'less deeply nested', item['data']);
    else if (this.#isNew(key)) this.messages.push({ message, keys: [key] });
  }

  #readEventsMessage(item: JsonObject, index: number): void {
    const { metadata, events: sent } = item;
    const isNamed = !isJsonObject(metadata) || isText(metadata['topic']);
    if (!isNamed || !hasTrackerId(item) || !Array.isArray(sent)) {
      addIssues(this.rejected, index, () => findItemIssues(envelopeSchema, item));
      return;
    }
    const envelope = this.#checked(envelopeSchema, item, index);
    const events: WebhookEvent[] = [];
    const keys: string[] = [];
    for (const [position, sentEvent] of sent.entries()) {
      if (!isJsonObject(sentEvent) || !isText(sentEvent['eventId'])) {
        addIssues(this.rejected, index, () => findIssues(webhookEventSchema, sentEvent, position));
        continue;
      }
      const event = this.#checked(webhookEventSchema, sentEvent, index, position);
      const key = buildKeyIfPossible(() => buildEventKey(envelope.tracker, event, this.#account));
      if (key === undefined) {
        const message = `\`events[${position}]\` has no \`eventId\`, and its content is nested too deeply to build a key from it`;
        addIssues(this.rejected, index, () => [{ path: [], code: 'invalid_type', message }]);
      } else if (this.#isNew(key)) {
        events.push(event);
        keys.push(key);
      }
    }
    // An item without new events is a duplicate or rejected; one that was sent without events goes to `onOther`.
    if (events.length === 0 && sent.length > 0) return;
    // `#checked` has returned a copy, so `Object.assign` does not change the payload of the caller.
    this.messages.push({ message: Object.assign(envelope, { kind: 'events' as const, events }), keys });
  }

  #isNew(key: string): boolean {
    if (this.#keys.has(key)) {
      this.duplicates += 1;
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
    if (!isFull(this.mismatched, index)) {
      const result = safeParse(schema, sent);
      if (result.success) return result.data;
      addIssues(this.mismatched, index, () => findIssues(schema, sent, position));
    }
    // Safe cast for the fields of the key, which were checked before. The other fields keep what the service sent.
    return { ...sent } as z.output<Schema>;
  }
}

/** Returns undefined for content that is nested deeper than the call stack allows. Only keys that are built from content can fail. */
function buildKeyIfPossible(build: () => string): string | undefined {
  try {
    return build();
  } catch (error) {
    if (readError(error)?.name === 'RangeError') return undefined;
    throw error;
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

/** True if the item contains an id of its tracker. */
export function namesTracker(item: JsonObject): boolean {
  return hasTrackerId(withTracker(item));
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

/** True if no further issue of this item is kept. Items are read in order, so if the item is in the list, it is the last one. */
function isFull(list: readonly ItemIssues[], index: number): boolean {
  const last = list.at(-1);
  return last?.index === index ? last.issues.length >= MAX_ISSUES : list.length >= MAX_ITEMS_WITH_ISSUES;
}

function addIssues(list: ItemIssues[], index: number, find: () => readonly ValidationIssue[]): void {
  if (isFull(list, index)) return;
  const known = list.at(-1)?.index === index ? list.pop() : undefined;
  list.push({ index, issues: [...(known?.issues ?? []), ...find()].slice(0, MAX_ISSUES) });
}

const MAX_ISSUES_TOLD = 3;

/** @param problem - a verb phrase about the subject */
export function buildItemError(subject: string, problem: string, { issues }: ItemIssues): WebhookParseError {
  const messages = issues.slice(0, MAX_ISSUES_TOLD).map(({ message }) => message);
  const more = issues.length - MAX_ISSUES_TOLD;
  if (more > 0) messages.push(`and ${more} more problem${more === 1 ? '' : 's'}`);
  return new WebhookParseError(`${subject} ${problem}: ${messages.join('; ')}`);
}

/** Returns the path of an issue without positions in lists. */
export function getField({ path }: ValidationIssue): string {
  return formatPath(path.filter((key) => typeof key === 'string'));
}

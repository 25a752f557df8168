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

/** The faults of one item of a webhook. */
export interface ItemIssues {
  /** Its place in `trackings`; 0 for a body that is one item itself. */
  readonly index: number;
  /** The broken rules, the first 20 of an item; paths start at the item. */
  readonly issues: readonly ValidationIssue[];
}

/** What a webhook body holds. */
export interface ParsedWebhook {
  /** The items that can be handled; of events and proofs of delivery with the same key, the first one of the body. */
  readonly messages: WebhookMessage[];
  /** How many later ones were left out. For those that other bodies brought before, use a `WebhookInbox`. */
  readonly duplicates: number;
  /**
   * The first 100 items that cannot be handled, or hold events that cannot; empty when all is well. An item with good and bad
   * events is here for the bad and in `messages` with the good ones.
   */
  readonly rejected: ItemIssues[];
  /**
   * The first 100 of the `messages` with fields that are not what they should be. Nothing depends on these fields, so they are
   * kept as they came, whatever their type says.
   */
  readonly mismatched: ItemIssues[];
}

/**
 * Reads a webhook body, checks every item, lets no bad item hide a good one, and leaves out what the body repeats.
 * Takes the enveloped shape (`trackings[]`) and the flat one (`trackerId`, `events[]`); keeps unknown fields and topics.
 *
 * @param body - text, UTF-8 bytes, or JSON that is parsed already
 * @returns the messages, the items that are none, and the fields that are not what they should be
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
    const { trackings } = payload;
    for (let index = 0; index < trackings.length; index += 1) reader.read(trackings[index], index);
  }
  return reader.finish();
}

const BYTE_ORDER_MARK = 0xfeff;
// Fatal, since a replacement character inside an id would make two events one. It drops a byte order mark itself.
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** JSON of a body given as text or bytes; anything else is taken as parsed already. */
function decodeBody(body: unknown): unknown {
  if (typeof body === 'string') {
    return parseJson(body.charCodeAt(0) === BYTE_ORDER_MARK ? body.slice(1) : body);
  }
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return parseJson(decodeUtf8(body));
  return body;
}

function decodeUtf8(bytes: ArrayBuffer | ArrayBufferView): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new WebhookParseError('Expected `body` to be UTF-8, got invalid bytes', { cause: error });
  }
}

/** Far more than a webhook holds: millions of empty objects would block the event loop for seconds. */
const MAX_OBJECTS = 250_000;

function parseJson(text: string): unknown {
  if (countObjects(text) > MAX_OBJECTS) {
    throw new WebhookParseError(`Expected \`body\` to hold at most ${MAX_OBJECTS} objects, got more`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WebhookParseError(`Expected \`body\` to be JSON, got ${kindOf(text)}`, { cause: error });
  }
}

/** How many objects a text may hold at most; stops above `MAX_OBJECTS`. */
function countObjects(text: string): number {
  let count = 0;
  if (text.length <= MAX_OBJECTS) return count;
  for (let at = text.indexOf('{'); at !== -1 && count <= MAX_OBJECTS; at = text.indexOf('{', at + 1))
    count += 1;
  return count;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** More than any shipment has; checking a million would take a gigabyte for what is wrong with them. */
const MAX_TRACKING_NUMBERS = 1_000;

/** Its events are checked one by one: a list checks all of them before it says what is wrong. */
const envelopeSchema = eventsMessageSchema.extend({ events: z.array(z.unknown()) });

/**
 * Reads the items of one webhook. What an event is named and remembered by has to be right, or its item is rejected. Any
 * other field is kept as it came when it is not what it should be: the service promises none of them, and a delivery that
 * were rejected for one would be rejected every time, until the sender gives up.
 */
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
    // `kind` is ours to set; one that the service may send some day must not decide anything.
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
    const { metadata, shipment, events: sent } = item;
    const isEndless =
      isJsonObject(shipment) && countEntries(shipment['trackingNumbers']) > MAX_TRACKING_NUMBERS;
    const checkable = isEndless ? { ...item, shipment: undefined } : item;
    const isNamed = !isJsonObject(metadata) || isText(metadata['topic']);
    if (!isNamed || !hasTrackerId(item) || !Array.isArray(sent)) {
      this.#rejected.add(index, () => findItemIssues(envelopeSchema, checkable));
      return;
    }
    const envelope = this.#checked(envelopeSchema, checkable, index);
    if (isEndless) {
      this.#mismatched.add(index, () => [tooManyNumbers(countEntries(shipment['trackingNumbers']))]);
      Object.assign(envelope, { shipment });
    }
    const events = this.#readEvents(sent, index);
    const isAllBroken = events.length === 0 && sent.length > 0;
    const buildKey = buildEventKeys(envelope);
    const newEvents = events.filter((event) => this.#isNew(buildKey(event)));
    // Assigned, not spread: this object is ours, and a copy costs.
    if (!isAllBroken)
      this.#messages.push(Object.assign(envelope, { kind: 'events' as const, events: newEvents }));
  }

  #readEvents(sent: readonly unknown[], index: number): WebhookEvent[] {
    const events: WebhookEvent[] = [];
    for (let position = 0; position < sent.length; position += 1) {
      const event = sent[position];
      if (isJsonObject(event) && isText(event['eventId'])) {
        events.push(this.#checked(webhookEventSchema, event, index, position));
      } else {
        this.#rejected.add(index, () => findIssues(webhookEventSchema, event, position));
      }
    }
    return events;
  }

  #isNew(key: string): boolean {
    const countBefore = this.#keys.size;
    const isNew = this.#keys.add(key).size > countBefore;
    if (!isNew) this.#duplicates += 1;
    return isNew;
  }

  /** The record as its schema gives it; a copy of what came, when fields are not what they should be. */
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
    // Whatever anything here depends on was checked before; of the other fields `mismatched` says which break the type.
    return { ...sent } as z.output<Schema>;
  }
}

function getTopic(item: JsonObject): string | undefined {
  const { metadata } = item;
  if (!isJsonObject(metadata)) return undefined;
  const { topic } = metadata;
  return typeof topic === 'string' && topic !== '' ? topic : undefined;
}

/** The flat shape names the tracker's ids beside the events; gives it a tracker like the enveloped one. */
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

/** Checks an item by its schema, and that it has at least one of two ids, which the schema cannot say. */
function findItemIssues(schema: z.ZodType, item: JsonObject): ValidationIssue[] {
  const issues = findIssues(schema, item);
  const { tracker } = item;
  const hasIds = (ids: JsonObject) => (ids['trackerId'] ?? ids['clientTrackerId'] ?? undefined) !== undefined;
  if (!isJsonObject(tracker) || hasIds(tracker)) return issues;
  const message = 'Expected `tracker` to have a `trackerId` or a `clientTrackerId`, got neither';
  return [{ path: ['tracker'], code: 'invalid_type', message }, ...issues];
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string';
}

function countEntries(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

function tooManyNumbers(count: number): ValidationIssue {
  const message = `Expected \`shipment.trackingNumbers\` to be at most ${MAX_TRACKING_NUMBERS}, got an array of ${count}`;
  return { path: ['shipment', 'trackingNumbers'], code: 'too_big', message };
}

/** Asked only of what is broken, so that a good item never pays for our words. */
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

/**
 * Collects the first issues of the first items of a body: every byte of a body can break a rule, and an issue takes hundreds of
 * bytes, so all of them would take more memory than there is.
 */
class IssueList {
  readonly #issuesOfItem = new Map<number, ValidationIssue[]>();

  /** Whether there is no room for more issues of an item, so that nobody needs to look for them. */
  isFull(index: number): boolean {
    const issues = this.#issuesOfItem.get(index);
    if (issues !== undefined) return issues.length >= MAX_ISSUES;
    return this.#issuesOfItem.size >= MAX_ITEMS_WITH_ISSUES;
  }

  /** @param describe - is asked only when there is room */
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

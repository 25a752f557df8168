// Lets a test in another process, or in another language, do over HTTP what a test in this one does with methods.
import { z } from 'zod';
import { checkOptions } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import { eventSchema, type TrackingEvent } from '../schemas/event.ts';
import type { Failure } from './service/failures.ts';
import {
  errorReply,
  jsonReply,
  type RawRequest,
  type Reply,
  rejection,
  ServiceError,
} from './service/http.ts';
import { parseJson, validated } from './service/input.ts';
import type { EventInput } from './shipments/shipment.ts';

/** The verbs of a fake that can be asked for from outside. */
interface Controlled {
  shipment(of: string | { readonly trackerId: string }): ControlledShipment;
  fail(endpoint: EndpointName | '*', failure: Failure): { readonly remaining: number };
  reset(): void;
}

interface ControlledShipment {
  readonly events: readonly TrackingEvent[];
  readonly isTracked: boolean;
  addEvent(event: EventInput): this;
  stopTracking(): this;
}

const PREFIX = '/__fake/';

const anything = z.unknown().optional();
const stopBody = z.strictObject({ trackingNumber: anything, trackerId: anything });
const eventBody = stopBody.extend({ event: z.unknown().prefault({}) });
// A misspelt field would be stored, and nobody would ever see it.
const eventFields = z.strictObject(
  Object.fromEntries(Object.keys(eventSchema.shape).map((name) => [name, anything])),
);
const eventInput = eventSchema.partial();

function shipmentOf(fake: Controlled, { trackingNumber, trackerId }: z.output<typeof stopBody>) {
  if ((trackingNumber === undefined) === (trackerId === undefined))
    throw new ConfigurationError('Expected `body` to have either `trackingNumber` or `trackerId`');
  return fake.shipment(trackerId === undefined ? String(trackingNumber) : { trackerId: String(trackerId) });
}

/** What can be asked for, by the rest of the path; each returns what to answer. */
const ACTIONS: Readonly<Record<string, (fake: Controlled, body: unknown) => object>> = {
  events: (fake, body) => {
    const { event, ...of } = checkOptions(eventBody, body, 'body');
    checkOptions(eventFields, event, 'event');
    // Sound: JSON has no undefined, so a field that is there has its value.
    const input = validated(eventInput, event) as EventInput;
    return { events: shipmentOf(fake, of).addEvent(input).events };
  },
  stop: (fake, body) => {
    const of = checkOptions(stopBody, body, 'body');
    return { isTracked: shipmentOf(fake, of).stopTracking().isTracked };
  },
  failures: (fake, body) => {
    // Unproved, and checked by `fail`, which also takes what callers without types give it.
    const { endpoint = '*', ...failure } = Object(body) as Failure & { endpoint?: EndpointName | '*' };
    return { remaining: fake.fail(endpoint, failure).remaining };
  },
  reset: (fake) => {
    fake.reset();
    return {};
  },
};

function replyTo(fake: Controlled, { method, target, body }: RawRequest): Reply {
  const paths = Object.keys(ACTIONS).map((name) => PREFIX + name);
  const [path = ''] = target.split('?');
  const act = paths.includes(path) ? ACTIONS[path.slice(PREFIX.length)] : undefined;
  try {
    if (act === undefined) throw rejection(404, 'path_not_found', `Expected one of ${paths.join(', ')}.`);
    if (method !== 'POST') throw rejection(405, 'method_not_allowed', 'Use POST here.');
    return jsonReply(200, { data: act(fake, body === '' ? {} : parseJson(body)) });
  } catch (error) {
    if (error instanceof ServiceError) return errorReply(undefined, error);
    if (!(error instanceof ConfigurationError)) throw error;
    return errorReply(undefined, rejection(400, 'validation_error', error.message));
  }
}

/** What a request of the control path comes to; undefined for any other request. */
export function controlReply(fake: Controlled, request: RawRequest): Reply | undefined {
  return request.target.startsWith(PREFIX) ? replyTo(fake, request) : undefined;
}

// Lets tests in other processes and languages call the verbs of a fake over HTTP.
import * as z from 'zod';
import { checkOptions } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import { ConfigurationError } from '../errors.ts';
import { eventSchema } from '../schemas/event.ts';
import type { Failure } from './service/failures.ts';
import {
  checkApiKey,
  type FakeRequest,
  type FakeResponse,
  hasJsonType,
  rejection,
  ServiceError,
  toErrorResponse,
  toJsonResponse,
} from './service/http.ts';
import { parseJson, validate } from './service/input.ts';
import type { FakeShipment, ShipmentKey } from './shipments/fake-shipment.ts';
import type { EventInput } from './shipments/shipment.ts';

/** The verbs of a fake that can be called from outside. */
interface Controlled {
  shipment(of: ShipmentKey): FakeShipment;
  fail(endpoint: EndpointName | '*', failure: Failure): { readonly remaining: number };
  reset(): void;
}

const PREFIX = '/__fake/';

const anything = z.unknown().optional();
const stopBody = z.strictObject({ trackingNumber: anything, trackerId: anything });
const eventBody = stopBody.extend({ event: z.unknown().prefault({}) });
// Events keep unknown fields, so without this a misspelt field would be stored.
const eventFields = z.strictObject(
  Object.fromEntries(Object.keys(eventSchema.shape).map((name) => [name, anything])),
);
const eventInput = eventSchema.partial();

function findShipment(fake: Controlled, { trackingNumber, trackerId }: z.output<typeof stopBody>) {
  if ((trackingNumber === undefined) === (trackerId === undefined))
    throw new ConfigurationError('Expected `body` to have either `trackingNumber` or `trackerId`');
  return fake.shipment(trackerId === undefined ? String(trackingNumber) : { trackerId: String(trackerId) });
}

/** The action of each path below the prefix; its result becomes `data`. */
const ACTIONS: Readonly<Record<string, (fake: Controlled, body: unknown) => object>> = {
  events: (fake, body) => {
    const { event, ...of } = checkOptions(eventBody, body, 'body');
    checkOptions(eventFields, event, 'event');
    // Sound: JSON has no undefined, so every field that is there has a value.
    const input = validate(eventInput, event) as EventInput;
    return { events: findShipment(fake, of).addEvent(input).events };
  },
  stop: (fake, body) => {
    const of = checkOptions(stopBody, body, 'body');
    return { isTracked: findShipment(fake, of).stopTracking().isTracked };
  },
  failures: (fake, body) => {
    // Safe although unproved: `fail` checks endpoint and failure itself.
    const { endpoint = '*', ...failure } = Object(body) as Failure & { endpoint?: EndpointName | '*' };
    return { remaining: fake.fail(endpoint, failure).remaining };
  },
  reset: (fake) => {
    fake.reset();
    return {};
  },
};

/**
 * Rejects what a web page in a developer's browser could send. The fake serves no pages, so every `Origin` is that of
 * another site, also one whose name resolves to this machine. A page needs the permission of a preflight for JSON and
 * for a key, and gets none.
 */
function checkAccess(headers: Headers, apiKeys: readonly string[] | undefined): void {
  if (headers.has('origin'))
    throw rejection(403, 'origin_not_allowed', 'Web pages may not control the fake.');
  checkApiKey(headers, apiKeys);
  if (!hasJsonType(headers))
    throw rejection(415, 'unsupported_media_type', 'The Content-Type must be application/json.');
}

function act(fake: Controlled, { method, target, headers, body }: FakeRequest, apiKeys?: readonly string[]) {
  const paths = Object.keys(ACTIONS).map((name) => PREFIX + name);
  const [path = ''] = target.split('?');
  const action = paths.includes(path) ? ACTIONS[path.slice(PREFIX.length)] : undefined;
  checkAccess(headers, apiKeys);
  if (action === undefined) throw rejection(404, 'path_not_found', `Expected one of ${paths.join(', ')}.`);
  if (method !== 'POST') throw rejection(405, 'method_not_allowed', 'Use POST here.');
  return toJsonResponse(200, { data: action(fake, body === '' ? {} : parseJson(body)) });
}

/**
 * Carries out a request of a control path.
 *
 * @param fake - what is controlled
 * @param request - any request
 * @param apiKeys - the keys that may control it; default any key
 * @returns the response; undefined when the request is not for a control path
 */
export function control(
  fake: Controlled,
  request: FakeRequest,
  apiKeys: readonly string[] | undefined,
): FakeResponse | undefined {
  if (!request.target.startsWith(PREFIX)) return undefined;
  try {
    return act(fake, request, apiKeys);
  } catch (error) {
    if (error instanceof ServiceError) return toErrorResponse(undefined, error);
    if (!(error instanceof ConfigurationError)) throw error;
    return toErrorResponse(undefined, rejection(400, 'validation_error', error.message));
  }
}

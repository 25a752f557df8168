import { kindOf } from '../../common/validation.ts';
import { type EndpointName, endpoints } from '../../endpoints.ts';
import { MAX_BULK_ITEMS } from '../../schemas/bulk.ts';
import type { TrackerUpdateRequest } from '../../schemas/tracker.ts';
import { buildResults } from '../shipments/shipment.ts';
import { rejection, ServiceError } from './http.ts';
import { parseJson, validate, validateAt, validateTrackerInput } from './input.ts';
import type { FakeState } from './state.ts';
import {
  buildTrackerRecord,
  buildTrackingRecord,
  canRespond,
  canRespondAtOnce,
  type TrackerState,
  toHints,
  toPublicCourier,
} from './trackers.ts';

/** A request of an endpoint, not yet checked against the rules of the endpoint. */
interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

interface HandlerResult {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

type Handler = (call: Call, state: FakeState) => HandlerResult;

/** Wraps the data in the envelope of every endpoint but the bulk one. */
function succeed(status: number, data: unknown): HandlerResult {
  return { status, body: { data } };
}

function findTracker({ params, query }: Call, state: FakeState): TrackerState {
  const { searchBy } = validate(endpoints['trackers.get'].request.query, query);
  const tracker = state.trackers.find(params['trackerId'], searchBy);
  if (tracker === undefined) throw rejection(404, 'tracker_not_found', 'There is no such tracker.');
  return tracker;
}

/** Rejects a whole request that creates more trackers than the plan has left. */
function checkBulkQuota(state: FakeState, inputs: readonly unknown[]): void {
  const { quota } = state.options.plans.perShipment;
  // Counting validates every item, so it is skipped where nothing is limited.
  if (quota !== Infinity && state.trackers.size + state.countNew(inputs) > quota)
    throw rejection(403, 'quota_limit_reached', 'The items are more than what is left of the quota.');
}

/** Creates one tracker of a bulk request; the result echoes the input as it was sent. */
function createItem(inputData: unknown, state: FakeState) {
  try {
    const input = validateTrackerInput(state.now(), inputData);
    const { tracker, isNew } = state.createTracker(input);
    const itemStatus = isNew ? 'created' : 'existing';
    return { itemStatus, inputData, tracker: buildTrackerRecord(tracker, state.now()), errors: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { itemStatus: 'error', inputData, tracker: null, errors: error.errors };
  }
}

/** The service finds the shipment by these, so they are fixed once there are data. */
const FIXED_FIELDS = ['courierCode', 'originCountryCode', 'destinationCountryCode', 'shippingDate'] as const;

function hasResults(tracker: TrackerState): boolean {
  return tracker.shipment.events.length > 0;
}

/** Returns the results of the trackers that have some; where none of them has any, the option `noResults` decides. */
function showResults(trackers: readonly TrackerState[], state: FakeState): HandlerResult {
  const withResults = trackers.filter(hasResults);
  const isTooEarly = trackers.length > 0 && withResults.length === 0;
  if (isTooEarly && state.options.noResults === 'parcel_not_found')
    throw rejection(404, 'parcel_not_found', 'There are no data on this shipment yet.');
  return succeed(200, { trackings: withResults.map((tracker) => buildTrackingRecord(tracker, state.now())) });
}

/** One handler for every row of the endpoint table; a row without one does not compile. */
export const handlers: Readonly<Record<EndpointName, Handler>> = {
  'trackers.create': ({ bodyText }, state) => {
    const input = validateTrackerInput(state.now(), parseJson(bodyText));
    const { tracker, isNew } = state.createTracker(input);
    const status = isNew ? 201 : (state.options.existingStatus ?? 201);
    return succeed(status, { tracker: buildTrackerRecord(tracker, state.now()) });
  },
  'trackers.list': ({ query }, state) => {
    for (const field of ['page', 'limit'])
      if (query[field] === undefined)
        throw rejection(400, 'missing_mandatory_field', `\`${field}\` is missing.`);
    // Anything but a whole number stays text, which the schema rejects.
    const toNumber = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text);
    const numbers = Object.fromEntries(Object.entries(query).map(([field, text]) => [field, toNumber(text)]));
    const { page, limit, sort } = validate(endpoints['trackers.list'].request.query, numbers);
    const trackers = state.trackers.all();
    if (sort === -1) trackers.reverse();
    const shown = trackers.slice((page - 1) * limit, page * limit);
    return succeed(200, { trackers: shown.map((tracker) => buildTrackerRecord(tracker, state.now())) });
  },
  'trackers.createBulk': ({ bodyText }, state) => {
    const inputs = parseJson(bodyText);
    if (!Array.isArray(inputs) || inputs.length < 1 || inputs.length > MAX_BULK_ITEMS) {
      const message = `The body must be an array of 1 to ${MAX_BULK_ITEMS} items, got ${kindOf(inputs)}.`;
      throw rejection(400, 'validation_error', message);
    }
    checkBulkQuota(state, inputs);
    const data = inputs.map((input) => createItem(input, state));
    const count = (status: string) => data.filter((item) => item.itemStatus === status).length;
    const summary = {
      totalInputs: data.length,
      totalCreated: count('created'),
      totalExisting: count('existing'),
      totalErrors: count('error'),
    };
    const body = { summary, data, error: null };
    if (summary.totalErrors === 0) return { status: 201, body: { status: 'success', ...body } };
    if (summary.totalErrors < data.length) return { status: 207, body: { status: 'partial', ...body } };
    const error = { code: 'processing_error', message: 'No item could be processed.' };
    return { status: 400, body: { status: 'error', ...body, error } };
  },
  'trackers.track': ({ bodyText }, state) => {
    const nowMs = state.now();
    const input = validateTrackerInput(nowMs, parseJson(bodyText));
    const { tracker, isNew } = state.createTracker(input, true);
    const { courierCodes } = state.getParcel(tracker.trackingNumber);
    if (canRespondAtOnce(state.couriers, tracker, courierCodes)) state.fetchResults(tracker, nowMs);
    const status = isNew ? 201 : (state.options.existingStatus ?? 200);
    return succeed(status, { trackings: [buildTrackingRecord(tracker, nowMs)] });
  },
  'trackers.get': (call, state) =>
    succeed(200, { tracker: buildTrackerRecord(findTracker(call, state), state.now()) }),
  'trackers.update': (call, state) => {
    const tracker = findTracker(call, state);
    const { body } = endpoints['trackers.update'].request;
    const patch = validateAt<TrackerUpdateRequest>(state.now(), body, parseJson(call.bodyText));
    if (hasResults(tracker) && FIXED_FIELDS.some((field) => patch[field] !== undefined)) {
      const message = 'Data was gathered for this tracker; courier, countries and shipping date are fixed.';
      throw rejection(400, 'tracker_not_updatable', message);
    }
    state.updateTracker(tracker, patch);
    return succeed(200, { tracker: buildTrackerRecord(tracker, state.now()) });
  },
  'trackers.results': (call, state) => {
    const tracker = findTracker(call, state);
    return showResults([tracker], state);
  },
  'trackers.resultsByTrackingNumber': ({ params }, state) => {
    const rules = endpoints['trackers.resultsByTrackingNumber'].request.params;
    const { trackingNumber } = validate(rules, params);
    return showResults(state.trackers.findByTrackingNumber(trackingNumber.toUpperCase()), state);
  },
  'trackers.resendWebhookEvents': (call, state) => {
    const { trackerId } = findTracker(call, state);
    if (!state.options.webhooks)
      throw rejection(400, 'webhook_url_missing', 'No webhook URL is registered for the account.');
    return succeed(201, { summary: { totalResent: state.resend(trackerId) } });
  },
  'trackers.webhookHistory': (call, state) => {
    const { trackerId, trackingNumber, clientTrackerId } = findTracker(call, state);
    const pushes = state.webhooks.history.filter((push) => push.trackerId === trackerId);
    // A set, because pushes of one request share an attempt. The order is reversed first, because sorting is stable.
    const attempts = [...new Set(pushes.flatMap((push) => push.attempts))].reverse();
    attempts.sort((a, b) => Date.parse(b.sentAt) - Date.parse(a.sentAt));
    const findLastPush = (succeeded: boolean) =>
      attempts.find((attempt) => attempt.succeeded === succeeded)?.sentAt ?? null;
    const metadata = {
      trackingNumber,
      trackerId,
      clientTrackerId,
      webhookUrl: attempts[0]?.url ?? null,
      lastSuccessfulPushAt: findLastPush(true),
      lastFailedPushAt: findLastPush(false),
    };
    const webhooks = attempts.map(
      ({ succeeded, sentAt, status, requestBody, responseBody, responseHeaders }) => ({
        status: succeeded ? 'success' : 'failed',
        pushTimestamp: sentAt,
        requestBody,
        responseBody,
        responseHeaders,
        responseStatusCode: status === null ? null : String(status),
      }),
    );
    const day = new Date(state.now()).toISOString().slice(0, 10).replaceAll('-', '');
    const filename = `webhook-history-${trackingNumber}-${day}.json`;
    const headers = { 'content-disposition': `attachment; filename="${filename}"` };
    return { status: 200, body: { metadata, webhooks }, headers };
  },
  'tracking.search': ({ bodyText }, state) => {
    const input = validateAt(state.now(), endpoints['tracking.search'].request.body, parseJson(bodyText));
    if (state.searches >= state.options.plans.perCall.quota)
      throw rejection(403, 'quota_limit_reached', 'The per-call quota is used up.');
    state.searches += 1;
    const hints = toHints(input);
    const parcel = state.askCouriers(input.trackingNumber);
    const hasResponse =
      canRespond(state.couriers, hints) && canRespondAtOnce(state.couriers, hints, parcel.courierCodes);
    return succeed(201, { trackings: [buildResults(parcel, hints, hasResponse ? parcel.events : [])] });
  },
  // Works on either plan, because clients of both need the courier codes.
  'couriers.list': (_call, state) => succeed(200, { couriers: state.couriers.map(toPublicCourier) }),
};

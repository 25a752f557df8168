// JSON Schemas of every record and envelope. They are written from docs/service.md alone and share nothing with the schemas in
// `src`, so that the tests find mistakes in those.
import { Ajv2020 } from 'ajv/dist/2020.js';

type Schema = boolean | Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, Schema>>;

/** An object with all the required fields. It may have further fields, because the service may add some (docs/service.md 2.9). */
function object<Required extends Fields>(required: Required, optional: Fields = {}) {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) };
}

const list = (items: Schema, limits: Schema = {}) => ({ type: 'array', items, ...Object(limits) });
const orNull = (schema: Schema) => ({ anyOf: [{ type: 'null' }, schema] });
const anyOf = (...schemas: Schema[]) => ({ anyOf: schemas });
const oneOf = (...values: (string | null)[]) => ({ enum: values });
const pattern = (source: RegExp) => ({ type: 'string', pattern: source.source });

const text = { type: 'string', minLength: 1 };
const anyText = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };
const yesOrNo = { type: 'boolean' };
const wholeNumber = { type: 'integer' };

/** ISO 8601. */
const dateTime = pattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/);
/** docs/service.md 2.5 */
const logisticDateTime = pattern(/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/);
/** docs/service.md 3.6 */
const dateOrTime = pattern(/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/);
/** docs/service.md 3.4 */
const alpha2 = orNull(pattern(/^[A-Z]{2}$/));

/** docs/service.md 5.4 */
const status = {
  statusCode: oneOf(
    ...['data_order_created', 'data_order_cancelled', 'data_delivery_proposed', 'data_delivery_decided'],
    ...['transit_handover', 'transit_origin_country_departure', 'destination_arrival', 'customs_received'],
    ...['customs_exception', 'customs_rejected', 'customs_cleared', 'delivery_available_for_pickup'],
    ...['delivery_out_for_delivery', 'delivery_attempted', 'delivery_exception', 'delivery_refused'],
    ...['delivery_delivered', 'exception_return', 'exception_lost', 'exception_discarded'],
    null,
  ),
  statusCategory: oneOf('data', 'transit', 'destination', 'customs', 'delivery', 'exception', null),
  statusMilestone: oneOf(
    ...['pending', 'info_received', 'in_transit', 'out_for_delivery', 'failed_attempt'],
    ...['available_for_pickup', 'delivered', 'exception'],
  ),
};

/** docs/service.md 7.1 */
const error = object({ code: pattern(/^[a-z0-9_]+$/) }, { message: anyText });

/** The fields of a tracker that webhooks have, too (docs/service.md 2.1, 2.2, 3.1, 3.3). */
const trackerFields = {
  trackerId: text,
  trackingNumber: pattern(/^[A-Z0-9/._-]{5,50}$/),
  isSubscribed: yesOrNo,
  createdAt: dateTime,
};
const ownIds = {
  shipmentReference: { ...textOrNull, maxLength: 100 },
  clientTrackerId: { ...textOrNull, maxLength: 100 },
};
const courierCodes = anyOf(text, list(text, { maxItems: 3 }));
/** docs/service.md 2.18 */
const trackerRecipient = object({}, { name: text });
const tracker = object(
  { ...trackerFields, isTracked: yesOrNo },
  { ...ownIds, courierCode: courierCodes, recipient: trackerRecipient },
);
/** `isTracked` is declared required, but no example of a webhook has it (docs/service.md 2.16, 8.10). */
const webhookTracker = object(trackerFields, {
  ...ownIds,
  isTracked: false,
  courierCode: false,
  recipient: false,
});

/** docs/service.md 2.4, 2.6 */
const event = object({
  // Declared a UUID, but no example is one.
  eventId: text,
  trackingNumber: text,
  eventTrackingNumber: text,
  status: textOrNull,
  occurrenceDatetime: logisticDateTime,
  order: { type: ['integer', 'null'] },
  location: textOrNull,
  sourceCode: textOrNull,
  courierCode: textOrNull,
  ...status,
});

const predictedRange = object({}, { from: orNull(logisticDateTime), to: orNull(logisticDateTime) });
/** docs/service.md 2.7, 2.8, 2.13 */
const delivery = object(
  {
    estimatedDeliveryDate: textOrNull,
    courierEstimatedDeliveryDate: orNull(object({ from: textOrNull, to: textOrNull })),
    service: textOrNull,
  },
  { signedBy: textOrNull, aiPredictiveDeliveryDate: predictedRange },
);
const recipient = object({
  name: textOrNull,
  address: textOrNull,
  postCode: textOrNull,
  city: textOrNull,
  subdivision: textOrNull,
});
const shipment = object({
  shipmentId: orNull(text),
  ...status,
  originCountryCode: alpha2,
  destinationCountryCode: alpha2,
  trackingNumbers: list(object({ tn: text })),
  recipient: orNull(recipient),
  delivery,
});

/** docs/service.md 2.14 */
const statistics = object({
  timestamps: object({
    infoReceivedDatetime: orNull(logisticDateTime),
    inTransitDatetime: orNull(logisticDateTime),
    outForDeliveryDatetime: orNull(logisticDateTime),
    failedAttemptDatetime: orNull(logisticDateTime),
    availableForPickupDatetime: orNull(logisticDateTime),
    exceptionDatetime: orNull(logisticDateTime),
    deliveredDatetime: orNull(logisticDateTime),
  }),
});

const results = { shipment, events: list(event), statistics };
const tracking = object({ tracker, ...results });

/** docs/service.md 2.15 */
const courier = object({
  courierCode: text,
  courierName: text,
  website: textOrNull,
  isPost: yesOrNo,
  // Declared as alpha-2, but the list of the service has a code of three letters, too.
  countryCode: orNull(pattern(/^[A-Z]{2,3}$/)),
  requiredFields: orNull(list(oneOf('destinationPostCode', 'destinationCountryCode', 'courierAccount'))),
  isDeprecated: yesOrNo,
});

/** docs/service.md 7.8 */
const bulkItem = {
  ...object(
    { itemStatus: oneOf('created', 'existing', 'error'), inputData: true, errors: orNull(list(error)) },
    // Declared required, but the example of a failed item has none.
    { tracker: orNull(tracker) },
  ),
  if: { properties: { itemStatus: { const: 'error' } } },
  // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema.
  then: { properties: { tracker: { type: 'null' }, errors: { type: 'array', minItems: 1 } } },
  else: { properties: { tracker: { type: 'object' } }, required: ['tracker'] },
};
const bulkSummary = object({
  totalInputs: wholeNumber,
  totalCreated: wholeNumber,
  totalExisting: wholeNumber,
  totalErrors: wholeNumber,
});
/** docs/service.md 3.9, 7.2, 7.9, 7.10 */
const bulkEnvelope = {
  ...object({
    status: oneOf('success', 'partial', 'error'),
    summary: orNull(bulkSummary),
    data: orNull(list(bulkItem, { maxItems: 100 })),
    error: orNull(error),
  }),
  if: { properties: { status: { const: 'error' } } },
  // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema.
  then: { properties: { error: { type: 'object' } } },
  else: {
    properties: { summary: { type: 'object' }, data: { type: 'array' }, error: { type: 'null' } },
  },
};

/** docs/service.md 8.6, 8.13 */
const metadata = (topic: string) => object({ generatedAt: dateTime, messageId: text, topic: oneOf(topic) });
const webhookEvents = object({
  metadata: metadata('tracking/events'),
  tracker: webhookTracker,
  ...results,
});
const content = object({ type: anyText, text: textOrNull, downloadUrl: textOrNull });
const proof = object({ status: oneOf('found', 'unavailable'), courier: true, content: orNull(content) });
const webhookProofOfDelivery = object(
  { metadata: metadata('tracking/pod'), tracker: webhookTracker, data: proof },
  { events: false },
);
/** docs/service.md 8.2 */
const webhook = object({
  trackings: list(anyOf(webhookEvents, webhookProofOfDelivery), { minItems: 1 }),
});
/** docs/service.md 8.2, 8.10 */
const webhookFlat = {
  ...object({ events: list(event) }, { trackerId: text, clientTrackerId: textOrNull, trackings: false }),
  anyOf: [{ required: ['trackerId'] }, { required: ['clientTrackerId'] }],
};

/** docs/service.md 8.9 */
const webhookHistory = object({
  metadata: object({
    trackingNumber: text,
    trackerId: text,
    clientTrackerId: textOrNull,
    webhookUrl: textOrNull,
    lastSuccessfulPushAt: orNull(dateTime),
    lastFailedPushAt: orNull(dateTime),
  }),
  webhooks: list(
    object({
      status: oneOf('success', 'failed'),
      pushTimestamp: orNull(dateTime),
      requestBody: anyOf(webhook, webhookFlat),
      responseBody: true,
      responseHeaders: { type: 'object' },
      // A text here, although a status is a number elsewhere.
      responseStatusCode: orNull(pattern(/^\d{3}$/)),
    }),
  ),
});

const textUpTo = (maxLength: number) => ({ type: 'string', maxLength });
/** The fields that creation, update and search share (docs/service.md 3.2, 3.4, 3.5, 3.6, 3.17). */
const hints = {
  courierCode: courierCodes,
  originCountryCode: pattern(/^[A-Z]{2,3}$/),
  destinationCountryCode: pattern(/^[A-Z]{2,3}$/),
  destinationPostCode: pattern(/^[A-Za-z0-9 _./-]{1,32}$/),
  shippingDate: dateOrTime,
};
const numberToTrack = { trackingNumber: pattern(/^[A-Za-z0-9/._-]{5,50}$/) };
/** docs/service.md 3.3, 3.7, 3.8, 3.14 */
const creationRequest = object(numberToTrack, {
  ...hints,
  clientTrackerId: textUpTo(100),
  shipmentReference: textUpTo(100),
  courierName: textUpTo(200),
  trackingUrl: textUpTo(1000),
  orderNumber: textUpTo(50),
  title: textUpTo(255),
  recipient: object({}, { email: textUpTo(254), name: textUpTo(100) }),
  settings: object({}, { restrictTrackingToCourierCode: anyOf(yesOrNo, courierCodes) }),
});
/** docs/service.md 3.7, 3.11, 3.14 */
const updateRequest = {
  ...object(
    {},
    {
      ...hints,
      isSubscribed: yesOrNo,
      courierName: textUpTo(200),
      trackingUrl: textUpTo(1000),
      recipient: object({}, { name: textUpTo(100), email: false }),
    },
  ),
  minProperties: 1,
};

/** docs/service.md 6.1, 6.2 */
const rateLimitHeaders = object({
  'ratelimit-limit': pattern(/^\d+$/),
  'ratelimit-remaining': pattern(/^\d+$/),
  'ratelimit-reset': pattern(/^[01]$/),
  'x-ratelimit-limit': pattern(/^\d+$/),
  'x-ratelimit-remaining': pattern(/^\d+$/),
  'x-ratelimit-reset': pattern(/^\d{10}$/),
});

/** docs/service.md 2.10 */
const envelope = (field: string, schema: Schema) => object({ data: object({ [field]: schema }) });

const SCHEMAS = {
  creationRequest,
  updateRequest,
  searchRequest: object(numberToTrack, hints),
  tracker,
  event,
  tracking,
  courier,
  trackerEnvelope: envelope('tracker', tracker),
  trackerPageEnvelope: envelope('trackers', list(tracker, { maxItems: 500 })),
  trackingsEnvelope: envelope('trackings', list(tracking)),
  // A per-call search has no tracker (docs/service.md 2.12).
  perCallEnvelope: envelope('trackings', list(object(results, { tracker: false }))),
  couriersEnvelope: envelope('couriers', list(courier)),
  // Declared a string, but every example shows a number (docs/service.md 8.12).
  resendEnvelope: envelope('summary', object({ totalResent: { type: 'integer', minimum: 0 } })),
  errorEnvelope: object({ errors: list(error, { minItems: 1 }), data: { type: 'null' } }),
  bulkEnvelope,
  webhookTracker,
  webhookEvents,
  webhookProofOfDelivery,
  webhook,
  webhookFlat,
  webhookHistory,
  rateLimitHeaders,
};
export type SchemaName = keyof typeof SCHEMAS;

const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });

/** Lists the breaches of a value by a schema; empty when it keeps the contract. */
export function findBreaches(schema: SchemaName, value: unknown): string[] {
  const validate = ajv.compile(SCHEMAS[schema]);
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`);
}

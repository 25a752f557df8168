// Sample records as the service sends them, with every known field (docs/service.md 2) and its forms of ids, times and nulls.

export const TRACKER = {
  trackerId: '26148317-7502-d3ac-44a9-546d240ac0dd',
  trackingNumber: '9400115901047177598206',
  shipmentReference: 'c6e4fef4-a816-b68f-4024-3b7e4c5a9f81',
  clientTrackerId: null,
  courierCode: ['us-post'],
  recipient: { name: 'Ada Lovelace' },
  isSubscribed: true,
  isTracked: true,
  createdAt: '2021-03-01T11:09:00.000Z',
};

const {
  isTracked: _isTracked,
  courierCode: _courierCode,
  recipient: _recipient,
  ...webhookTracker
} = TRACKER;
const WEBHOOK_TRACKER = webhookTracker;

/** Its id is no valid UUID, as in the published samples. */
export const EVENT = {
  eventId: 'fcb74e2e-3c4a-4e3b-x9dd-0a8b4e6c1f77',
  trackingNumber: '9400115901047177598206',
  eventTrackingNumber: '9400115901047177598206',
  status: 'Delivered, Front Door/Porch',
  occurrenceDatetime: '2021-03-04T17:12:57',
  order: null,
  location: 'SAN RAFAEL, CA 94901',
  sourceCode: 'us-post',
  courierCode: 'us-post',
  statusCode: 'delivery_delivered',
  statusCategory: 'delivery',
  statusMilestone: 'delivered',
};

/** An event with a date, without a time, and with null in every other nullable field. */
export const BARE_EVENT = {
  ...EVENT,
  eventId: 'e-2',
  status: null,
  occurrenceDatetime: '2021-03-02',
  order: 3,
  location: null,
  sourceCode: null,
  courierCode: null,
  statusCode: null,
  statusCategory: null,
  statusMilestone: 'in_transit',
};

export const SHIPMENT = {
  shipmentId: '4ebc1766-1fa5-4a2a-8f3d-d4b0ab3b6d1f',
  statusCode: 'delivery_delivered',
  statusCategory: 'delivery',
  statusMilestone: 'delivered',
  originCountryCode: 'CN',
  destinationCountryCode: 'US',
  trackingNumbers: [{ tn: '9400115901047177598206' }],
  recipient: { name: null, address: null, postCode: '94901', city: 'SAN RAFAEL', subdivision: null },
  delivery: {
    estimatedDeliveryDate: null,
    courierEstimatedDeliveryDate: { from: '2021-03-04', to: null },
    service: null,
    signedBy: null,
    aiPredictiveDeliveryDate: { from: '2021-03-04T09:00:00+02:00', to: '2021-03-05' },
  },
};

/** A shipment with null in every nullable field. */
export const EMPTY_SHIPMENT = {
  shipmentId: null,
  statusCode: null,
  statusCategory: null,
  statusMilestone: 'pending',
  originCountryCode: null,
  destinationCountryCode: null,
  trackingNumbers: [],
  recipient: null,
  delivery: {
    estimatedDeliveryDate: null,
    courierEstimatedDeliveryDate: null,
    service: null,
    signedBy: null,
  },
};

export const STATISTICS = {
  timestamps: {
    infoReceivedDatetime: null,
    inTransitDatetime: '2021-03-02',
    outForDeliveryDatetime: '2021-03-04T09:00:00+02:00',
    failedAttemptDatetime: null,
    availableForPickupDatetime: null,
    exceptionDatetime: null,
    deliveredDatetime: '2021-03-04T17:12:57Z',
  },
};

export const TRACKING = {
  tracker: TRACKER,
  shipment: SHIPMENT,
  events: [EVENT, BARE_EVENT],
  statistics: STATISTICS,
};
export const PENDING_TRACKING = { ...TRACKING, shipment: EMPTY_SHIPMENT, events: [] };
export const PER_CALL_TRACKING = { shipment: SHIPMENT, events: [EVENT], statistics: STATISTICS };

export const COURIER = {
  courierCode: 'us-post',
  courierName: 'USPS',
  website: 'https://www.usps.com/',
  isPost: true,
  countryCode: 'US',
  requiredFields: null,
  isDeprecated: false,
};
export const BARE_COURIER = {
  ...COURIER,
  courierCode: 'x-courier',
  website: null,
  countryCode: null,
  requiredFields: ['destinationPostCode', 'courierAccount'],
};

const INPUT = { trackingNumber: '9400115901047177598206' };
const ITEM_ERROR = { code: 'shipping_date_outdated', message: 'shippingDate is older than 180 days.' };
const CREATED_ITEM = { itemStatus: 'created', inputData: INPUT, tracker: TRACKER, errors: null };
const EXISTING_ITEM = { ...CREATED_ITEM, itemStatus: 'existing' };
const FAILED_ITEM = { itemStatus: 'error', inputData: INPUT, tracker: null, errors: [ITEM_ERROR] };
/** The tracker may be left out of an error item. */
const FAILED_ITEM_WITHOUT_TRACKER = { itemStatus: 'error', inputData: INPUT, errors: [ITEM_ERROR] };

function summary(totalCreated: number, totalExisting: number, totalErrors: number) {
  return {
    totalInputs: totalCreated + totalExisting + totalErrors,
    totalCreated,
    totalExisting,
    totalErrors,
  };
}

export const BULK_SUCCESS = {
  status: 'success',
  summary: summary(1, 1, 0),
  data: [CREATED_ITEM, EXISTING_ITEM],
  error: null,
};
export const BULK_PARTIAL = {
  status: 'partial',
  summary: summary(1, 0, 1),
  data: [CREATED_ITEM, FAILED_ITEM],
  error: null,
};
export const BULK_FAILED = {
  status: 'error',
  summary: summary(0, 0, 2),
  data: [FAILED_ITEM, FAILED_ITEM_WITHOUT_TRACKER],
  error: { code: 'processing_error', message: 'No item could be processed.' },
};
export const BULK_REFUSED = {
  status: 'error',
  summary: null,
  data: null,
  error: { code: 'quota_limit_reached', message: 'The quota is used up.' },
};

const METADATA = { generatedAt: '2021-03-04T18:00:00.000Z', messageId: 'b4b2c2b3-0c3b-4b8f' };
export const EVENTS_ITEM = {
  metadata: { ...METADATA, topic: 'tracking/events' },
  tracker: WEBHOOK_TRACKER,
  shipment: SHIPMENT,
  events: [EVENT],
  statistics: STATISTICS,
};
export const PROOF_ITEM = {
  metadata: { ...METADATA, topic: 'tracking/pod' },
  tracker: WEBHOOK_TRACKER,
  data: {
    status: 'found',
    courier: 'us-post',
    content: { type: 'signature', text: null, downloadUrl: 'https://example.test/proof.pdf' },
  },
};
export const ENVELOPED_WEBHOOK = { trackings: [EVENTS_ITEM] };
export const PROOF_WEBHOOK = { trackings: [PROOF_ITEM] };
export const FLAT_WEBHOOK = { trackerId: TRACKER.trackerId, clientTrackerId: 'order-1042', events: [EVENT] };

export const HISTORY = {
  metadata: {
    trackingNumber: TRACKER.trackingNumber,
    trackerId: TRACKER.trackerId,
    clientTrackerId: null,
    webhookUrl: 'https://shop.example.test/webhooks',
    lastSuccessfulPushAt: '2021-03-04T18:00:02.000Z',
    lastFailedPushAt: null,
  },
  webhooks: [
    {
      status: 'success',
      pushTimestamp: '2021-03-04T18:00:02.000Z',
      requestBody: ENVELOPED_WEBHOOK,
      responseBody: { success: true },
      responseHeaders: { 'content-type': 'application/json' },
      responseStatusCode: '200',
    },
    {
      status: 'failed',
      pushTimestamp: null,
      requestBody: ENVELOPED_WEBHOOK,
      responseBody: null,
      responseHeaders: {},
      responseStatusCode: null,
    },
  ],
};

/** Events of each tracking: a push holds what was discovered since the previous one, usually little. */
export const EVENTS_PER_TRACKING = 3;

function uuid(seed: number): string {
  return `0f1c2d3e-4b5a-4c6d-8e7f-${seed.toString(16).padStart(12, '0')}`;
}

function event(seed: number) {
  return {
    eventId: uuid(seed),
    trackingNumber: '9400115901047177598206',
    eventTrackingNumber: '9400115901047177598206',
    status: 'Out for Delivery, Expected Delivery by 9:00pm',
    occurrenceDatetime: '2026-03-04T17:12:57',
    order: null,
    location: 'SAN RAFAEL, CA 94901',
    sourceCode: 'usps-tracking',
    courierCode: 'us-post',
    statusCode: 'delivery_out_for_delivery',
    statusCategory: 'delivery',
    statusMilestone: 'out_for_delivery',
    datetime: '2026-03-04T17:12:57.000Z',
    hasNoTime: false,
    utcOffset: null,
  };
}

function tracking(seed: number) {
  return {
    metadata: {
      generatedAt: '2026-03-04T17:12:57.000Z',
      messageId: uuid(seed + 2_000_000_000),
      topic: 'tracking/events',
    },
    tracker: {
      trackerId: uuid(seed + 1_000_000_000),
      trackingNumber: '9400115901047177598206',
      shipmentReference: null,
      clientTrackerId: `order-${seed}`,
      isSubscribed: true,
      createdAt: '2026-03-01T10:00:00.000Z',
    },
    shipment: {
      shipmentId: uuid(seed + 3_000_000_000),
      statusCode: 'delivery_out_for_delivery',
      statusCategory: 'delivery',
      statusMilestone: 'out_for_delivery',
      originCountryCode: 'CN',
      destinationCountryCode: 'US',
      delivery: {
        estimatedDeliveryDate: null,
        courierEstimatedDeliveryDate: { from: null, to: null },
        service: null,
        signedBy: null,
      },
      trackingNumbers: [{ tn: '9400115901047177598206' }],
      recipient: { name: null, address: null, postCode: '94901', city: 'SAN RAFAEL', subdivision: null },
    },
    events: Array.from({ length: EVENTS_PER_TRACKING }, (_, index) => event(seed * 100 + index)),
    statistics: {
      timestamps: {
        infoReceivedDatetime: '2026-03-01T10:00:00',
        inTransitDatetime: '2026-03-02T10:00:00',
        outForDeliveryDatetime: '2026-03-04T17:12:57',
        failedAttemptDatetime: null,
        availableForPickupDatetime: null,
        exceptionDatetime: null,
        deliveredDatetime: null,
      },
    },
  };
}

/** A webhook body with every field that the public contract shows; no two seeds share an id. */
export function webhookBody(trackings: number, firstSeed = 0): string {
  return JSON.stringify({
    trackings: Array.from({ length: trackings }, (_, index) => tracking(firstSeed + index)),
  });
}

// Answers every request with the same results of a tracker, as many events as the path says: /10/... or /200/...
import { createServer } from 'node:http';

function results(count: number): string {
  const events = Array.from({ length: count }, (_, index) => ({
    eventId: `b7f4d0c2-${index}`,
    trackingNumber: '9400115901047177598206',
    eventTrackingNumber: '9400115901047177598206',
    status: 'Arrived at USPS Regional Facility',
    occurrenceDatetime: `2026-03-${String((index % 28) + 1).padStart(2, '0')}T17:12:57`,
    order: index,
    location: 'SAN RAFAEL, CA 94901',
    sourceCode: 'us-post',
    courierCode: 'us-post',
    statusCode: 'transit_handover',
    statusCategory: 'transit',
    statusMilestone: 'in_transit',
    datetime: '2026-03-04T17:12:57',
    utcOffset: null,
    hasNoTime: false,
  }));
  const tracker = {
    trackerId: '26148317-7502-d3ac-44a9-546d240ac0dd',
    trackingNumber: '9400115901047177598206',
    isTracked: true,
    isSubscribed: true,
    clientTrackerId: null,
    shipmentReference: 'c6e4fef4-a816-b68f-4024-3b7e4c5a9f81',
    createdAt: '2026-03-01T11:09:00.000Z',
  };
  const shipment = {
    shipmentId: '96e6eef2-6ab0-4a1a-8b0a-1f7d9a3a0f11',
    statusCode: 'transit_handover',
    statusCategory: 'transit',
    statusMilestone: 'in_transit',
    originCountryCode: 'US',
    destinationCountryCode: 'US',
    delivery: { estimatedDeliveryDate: '2026-03-20', service: null, signedBy: null },
    trackingNumbers: [{ tn: '9400115901047177598206' }],
    recipient: { name: null, address: null, postCode: '94901', city: 'SAN RAFAEL', subdivision: 'CA' },
  };
  return JSON.stringify({
    data: { trackings: [{ tracker, shipment, events, statistics: { timestamps: {} } }] },
  });
}

const bodies = new Map([10, 200].map((count) => [String(count), results(count)]));
const server = createServer((request, response) => {
  const body = bodies.get(request.url?.split('/')[1] ?? '') ?? '{}';
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'ratelimit-limit': '1000000',
    'ratelimit-remaining': '999999',
    'ratelimit-reset': '1',
    'x-request-id': 'bench',
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
process.on('disconnect', () => process.exit());

import { describe, expect, test } from 'vitest';
import { ENDPOINT_NAMES, endpoints } from '../src/endpoints.ts';

/** The endpoints of docs/service.md 1.10 with the limits of 6.1, by method and path. */
const LIMITS = [
  ['POST /trackers', 10],
  ['GET /trackers', 10],
  ['POST /trackers/bulk', 3],
  ['POST /trackers/track', 10],
  ['GET /trackers/{trackerId}', 10],
  ['PATCH /trackers/{trackerId}', 10],
  ['GET /trackers/search/{trackingNumber}/results', 10],
  ['GET /trackers/{trackerId}/results', 10],
  ['POST /trackers/{trackerId}/webhook-events/resend', 1],
  ['POST /tracking/search', 10],
  ['GET /couriers', 1],
  ['GET /trackers/{trackerId}/webhook-history/download', 1],
] as const;

const rows = ENDPOINT_NAMES.map((name) => endpoints[name]);

test.each(LIMITS)('%s → limit of %d a second', (methodAndPath, limit) => {
  const row = rows.find(({ method, path }) => `${method} ${path}` === methodAndPath);
  expect(row?.limitPerSecond).toBe(limit);
});

test('the table → the documented endpoints and no others', () => {
  const found = rows.map(({ method, path }) => `${method} ${path}`);
  expect(found.toSorted()).toEqual(LIMITS.map(([methodAndPath]) => methodAndPath).toSorted());
});

describe('classes', () => {
  test('endpoints that are not safe to repeat → their documented retry classes', () => {
    const unsafe = ENDPOINT_NAMES.filter((name) => endpoints[name].retryClass !== 'safe');
    expect(Object.fromEntries(unsafe.map((name) => [name, endpoints[name].retryClass]))).toEqual({
      'trackers.createBulk': 'bulk',
      'trackers.resendWebhookEvents': 'unsafe',
      'tracking.search': 'unsafe',
    });
  });

  test('responses outside 2xx that are results → only those of the bulk endpoint', () => {
    const withResults = Object.entries(endpoints).filter(([, row]) => 'resultStatuses' in row.response);
    expect(withResults.map(([name]) => name)).toEqual(['trackers.createBulk']);
  });
});

test('every path parameter → has a rule of its own', () => {
  for (const row of rows) {
    const names = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const shape = 'params' in row.request ? Object.keys(row.request.params.shape) : [];
    expect(shape).toEqual(names);
  }
});

import { findBreaches, type SchemaName } from './schemas.ts';

interface ContractEndpoint {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** `{x}` stands for one segment. */
  readonly path: string;
  /** The success statuses; the first is the usual one. */
  readonly success: readonly number[];
  readonly schema: SchemaName;
}

/**
 * Endpoints with their statuses and envelopes (docs/service.md 1.9, 1.10, 2.10). Not derived from the client's table, so
 * that the table is checked. An outcome that may have either of two statuses has both here.
 */
export const ENDPOINTS: readonly ContractEndpoint[] = [
  { method: 'POST', path: '/trackers', success: [201, 200], schema: 'trackerEnvelope' },
  { method: 'GET', path: '/trackers', success: [200], schema: 'trackerPageEnvelope' },
  { method: 'POST', path: '/trackers/bulk', success: [201, 200, 207], schema: 'bulkEnvelope' },
  { method: 'POST', path: '/trackers/track', success: [200, 201], schema: 'trackingsEnvelope' },
  { method: 'GET', path: '/trackers/{id}', success: [200], schema: 'trackerEnvelope' },
  { method: 'PATCH', path: '/trackers/{id}', success: [200], schema: 'trackerEnvelope' },
  { method: 'GET', path: '/trackers/search/{tn}/results', success: [200], schema: 'trackingsEnvelope' },
  { method: 'GET', path: '/trackers/{id}/results', success: [200], schema: 'trackingsEnvelope' },
  {
    method: 'POST',
    path: '/trackers/{id}/webhook-events/resend',
    success: [201],
    schema: 'resendEnvelope',
  },
  {
    method: 'GET',
    path: '/trackers/{id}/webhook-history/download',
    success: [200],
    schema: 'webhookHistory',
  },
  { method: 'POST', path: '/tracking/search', success: [201], schema: 'perCallEnvelope' },
  { method: 'GET', path: '/couriers', success: [200], schema: 'couriersEnvelope' },
];

/** The known error codes with their statuses (docs/service.md 7.6); undefined where none is known. */
const ERROR_STATUSES: Readonly<Record<string, readonly number[] | undefined>> = {
  validation_error: undefined,
  missing_mandatory_field: undefined,
  parsing_error: undefined,
  processing_error: undefined,
  webhook_url_missing: undefined,
  shipping_date_outdated: undefined,
  tracker_conflict: [400],
  request_conflict: [409],
  tracker_not_found: [404],
  parcel_not_found: [404],
  tracker_not_updatable: [400],
  no_active_subscription: [422],
  quota_limit_reached: [403, 405],
  bulk_create_limit_exceeded: [403],
  auth_missing_header: [400],
  auth_invalid_header: [400],
  auth_invalid_api_key: [401],
};

/**
 * Lists the breaches of a response: in its headers, its status, and its body against the schema of endpoint and status.
 * Paths that the contract does not have are not checked.
 */
export function findResponseBreaches(
  method: string,
  target: string,
  { status, headers, body }: { readonly status: number; readonly headers: Headers; readonly body: unknown },
): string[] {
  const path = target.replace(/\?.*/, '');
  const matches = (template: string) =>
    new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  const endpoint = ENDPOINTS.find((candidate) => candidate.method === method && matches(candidate.path));
  // A 429 may be plain text (docs/service.md 7.4).
  if (endpoint === undefined || (status === 429 && typeof body === 'string')) return [];
  const isBulk = endpoint.path === '/trackers/bulk';
  const isSuccess = status < 400;
  const breaches = findBreaches(isSuccess || isBulk ? endpoint.schema : 'errorEnvelope', body);
  const { errors, error } = Object(body);
  const code = String((errors?.[0] ?? error)?.code);
  const statuses = isSuccess ? endpoint.success : ERROR_STATUSES[code];
  if (statuses?.includes(status) === false) breaches.push(`status ${status} is not documented for ${code}`);
  if (!headers.has('x-request-id')) breaches.push('no x-request-id');
  return breaches.map((breach) => `${method} ${endpoint.path} ${status}: ${breach}`);
}

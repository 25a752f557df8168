import { createFakeTrackingService, type FakeTrackingServiceOptions } from 'tracking-client/testing';
import { onTestFinished, vi } from 'vitest';
import { findResponseBreaches } from './endpoints.ts';
import { findBreaches } from './schemas.ts';

export const NUMBER = 'RR123456785CN';
export const OTHER_NUMBER = 'LA680658838NL';
export const HOUR_MS = 3_600_000;

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return isJson ? JSON.parse(text) : text;
}

/** Returns a list that collects breaches of the contract; the test fails at its end unless the list is empty. */
export function collectBreaches(): string[] {
  const breaches: string[] = [];
  onTestFinished(() => {
    if (breaches.length > 0) throw new Error(`The contract is broken: ${breaches.join('; ')}`);
  });
  return breaches;
}

/** Creates a fake in virtual time. Each response is checked by the contract's schemas; one breach fails the test. */
export function contractFake(options: FakeTrackingServiceOptions = {}) {
  vi.useFakeTimers({ now: Date.UTC(2026, 2, 10, 12) });
  const fake = createFakeTrackingService({ limits: false, ...options });
  const breaches = collectBreaches();

  /** Sends a request; a body is sent as JSON. */
  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fake.fetch(fake.baseUrl + path, {
      method,
      headers: { authorization: 'Bearer key', 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const received = { status: response.status, headers: response.headers, body: await readBody(response) };
    breaches.push(...findResponseBreaches(method, path, received.status, received.body));
    return received;
  }

  /** Creates a tracker whose first results are due, so that later events show at once. */
  async function createFetched(input: object = {}): Promise<string> {
    const { body } = await call('POST', '/trackers', { trackingNumber: NUMBER, ...input });
    vi.advanceTimersByTime(10_000);
    return String(at(body, 'data', 'tracker', 'trackerId'));
  }

  return { fake, call, createFetched };
}

export const SECRET = 'whsec-0123456789abcdef';

/** Creates a receiver of webhooks that checks every request by the contract; one breach fails the test. */
export function contractReceiver(schema: 'webhook' | 'webhookFlat' = 'webhook') {
  const bodies: unknown[] = [];
  const breaches = collectBreaches();
  const target = async (request: Request): Promise<Response> => {
    const body: unknown = await request.json();
    breaches.push(...findBreaches(schema, body));
    if (request.method !== 'POST') breaches.push(`method ${request.method}`);
    if (request.headers.get('authorization') !== `Bearer ${SECRET}`) breaches.push('no bearer secret');
    if (!/^application\/json\b/.test(request.headers.get('content-type') ?? ''))
      breaches.push('no JSON type');
    bodies.push(body);
    return new Response(null, { status: 200 });
  };
  return { target, bodies };
}

/**
 * Reads the value at a path of JSON, e.g. `at(body, 'data', 'trackings', 0, 'shipment')`; undefined when it is not there.
 * Bodies are unknown on purpose: the client's types must not influence what the contract tests check.
 */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}

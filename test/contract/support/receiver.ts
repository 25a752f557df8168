import { collectBreaches } from './contract-fake.ts';
import { findBreaches } from './schemas.ts';

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

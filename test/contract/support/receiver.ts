import { collectBreaches } from './breaches.ts';
import { breachesOf } from './schemas.ts';

export const SECRET = 'whsec-0123456789abcdef';

/** What reached the receiver in one request. */
export interface ReceivedPush {
  readonly body: unknown;
  readonly receivedAtMs: number;
}

/**
 * A receiver of webhooks that holds every request against the contract; one breach fails the test.
 *
 * @param answer - what it answers to the n-th request, from 1; default 200
 */
export function contractReceiver(
  answer: (count: number) => Response = () => new Response(null, { status: 200 }),
  schema: 'webhook' | 'webhook-flat' = 'webhook',
) {
  const received: ReceivedPush[] = [];
  const breaches = collectBreaches();
  const target = async (request: Request): Promise<Response> => {
    const body: unknown = await request.json();
    breaches.push(...breachesOf(schema, body));
    if (request.method !== 'POST') breaches.push(`method ${request.method}`);
    if (request.headers.get('authorization') !== `Bearer ${SECRET}`) breaches.push('no bearer secret');
    if (!/^application\/json\b/.test(request.headers.get('content-type') ?? ''))
      breaches.push('no JSON type');
    received.push({ body, receivedAtMs: Date.now() });
    return answer(received.length);
  };
  return { target, received };
}

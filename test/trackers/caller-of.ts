import { resolveConfig } from '../../src/config/config.ts';
import { Caller } from '../../src/http/call.ts';
import { API_KEY, BASE_URL, makeClient, type Step } from '../support/make-client.ts';

/** What the resources of a client call with, for a service that answers like this. */
export function callerOf(answer: Step): Caller {
  const { fetch } = makeClient(answer);
  return new Caller(
    resolveConfig({ baseUrl: BASE_URL, apiKey: API_KEY, fetch, rateLimit: false, logLevel: 'silent' }),
  );
}

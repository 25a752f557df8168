import ky, { type KyInstance } from 'ky';

/** Builds the requests of a client. */
export function createTransport(baseUrl: string, headers: Readonly<Record<string, string>>): KyInstance {
  return ky.create({
    prefixUrl: baseUrl,
    headers,
    // p-retry retries, because endpoints differ in what may be retried, and each attempt takes a permit.
    retry: 0,
    // `AttemptLimit` limits the time, because ky stops its timer when the headers arrive, before the body.
    timeout: false,
    // `readCallResult` creates the errors from the envelopes of the service.
    throwHttpErrors: false,
  });
}

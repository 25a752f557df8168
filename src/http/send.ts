import ky from 'ky';
import { isBytes, isInstance, listCauses } from '../common/foreign.ts';
import { describeThrown, kindOf } from '../common/messages.ts';
import type { Secret } from '../common/secrets.ts';
import type { Config } from '../config/config.ts';
import type { FetchResponse } from '../options.ts';
import type { CallErrors } from './call-errors.ts';
import { callFetch, checkFetch, isStream, NoResponseError } from './call-fetch.ts';
import { type FetchFailure, readFetchFailure } from './fetch-failure.ts';
import type { PreparedRequest } from './prepare.ts';
import type { RawResponse, ResponseHead } from './response-head.ts';

interface AttemptOptions {
  readonly key: Secret;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  /** Called right before the request is sent. */
  readonly onSend: () => void;
}

const KY_OPTIONS = {
  // p-retry retries, because endpoints differ in what may be retried, and each attempt takes a permit.
  retry: 0,
  // `AttemptLimit` limits the time, because ky stops its timer when the headers arrive, before the body.
  timeout: false,
  // `readCallResult` creates the errors from the envelopes of the service.
  throwHttpErrors: false,
} as const;

/** @throws ConnectionError, or the reason of the signal */
export async function sendRequest(
  config: Config,
  { method, target, body }: PreparedRequest<unknown>,
  { key, headers, signal, onSend }: AttemptOptions,
  errors: CallErrors,
): Promise<FetchResponse> {
  let wasCalled = false;
  try {
    return await ky(target.slice(1), {
      ...KY_OPTIONS,
      prefixUrl: config.baseUrl,
      method,
      headers: {
        ...config.headers,
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        authorization: `Bearer ${key.text}`,
      },
      fetch: (request) => {
        checkFetch(config.fetch);
        onSend();
        wasCalled = true;
        // Safe casts: ky passes the `Request` that it made, and reads nothing of a response that `FetchResponse` lacks.
        return callFetch(config.fetch, request as Request, { body, signal }) as Promise<Response>;
      },
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw errors.createConnectionError(cause, key, explain(config, cause, wasCalled));
  }
}

function explain({ fetch, baseUrl }: Config, cause: unknown, wasCalled: boolean): FetchFailure {
  if (isInstance(cause, NoResponseError)) return blame(cause);
  const failure = readFetchFailure(cause, wasCalled && fetch !== undefined, baseUrl.startsWith('http:'));
  if (wasCalled) return failure;
  // Nothing was sent, because this environment lacks something that a request needs, as jest-environment-jsdom does.
  const missing = ['Headers', 'Request'].find((name) => Reflect.get(globalThis, name) === undefined);
  const reason =
    missing === undefined
      ? failure.reason
      : `the global \`${missing}\` is missing; if this is a test in jsdom, run it in the environment \`node\``;
  return { reason: `the request could not be made: ${reason}`, neverSent: true, isPermanent: true };
}

function blame({ message }: NoResponseError): FetchFailure {
  return { reason: message, neverSent: false, isPermanent: true };
}

/** @throws ConnectionError if the body breaks off or is not a body, or the reason of the signal */
export async function readResponse(
  config: Config,
  request: PreparedRequest<unknown>,
  head: ResponseHead,
  response: FetchResponse,
  { signal, errors }: { readonly signal: AbortSignal; readonly errors: CallErrors },
): Promise<RawResponse> {
  try {
    return { ...head, ...(await readBody(config, response, head.key)) };
  } catch (cause) {
    signal.throwIfAborted();
    // The status is enough (docs/service.md 8.12): ignore a body that is cut off.
    if (request.response.isStatusEnough && response.ok) return { ...head, text: '', isCut: false };
    if (isInstance(cause, NoResponseError)) throw errors.createConnectionError(cause, head.key, blame(cause));
    throw errors.createIncompleteError(cause, head.key);
  }
}

/** @throws NoResponseError if `text` fails without a code; the failures of a connection have one, as in node-fetch */
async function readText(fetch: Config['fetch'], response: FetchResponse): Promise<unknown> {
  try {
    return await response.text();
  } catch (cause) {
    if (listCauses(cause).some(({ code }) => code !== '')) throw cause;
    const problem = `returned a response whose \`text()\` failed: ${describeThrown(cause)}`;
    throw new NoResponseError(fetch, problem, { cause });
  }
}

/** Drops a byte order mark, which `Buffer.toString` would keep. */
const decoder = new TextDecoder();

/** Reads at most `maxResponseBytes`; the rest of a longer body is not read. The key is masked in the beginning of a longer body. */
async function readBody(
  { fetch, maxResponseBytes }: Config,
  response: FetchResponse,
  key: Secret,
): Promise<Pick<RawResponse, 'text' | 'isCut'>> {
  const { body } = response;
  // A stub of `fetch` may return a body that is not a stream.
  if (!isStream(body)) {
    const text: unknown = await readText(fetch, response);
    if (typeof text !== 'string')
      throw new NoResponseError(fetch, `returned a response whose \`text()\` is ${kindOf(text)}`);
    const isCut = text.length > maxResponseBytes;
    return { text: isCut ? key.maskBeginning(text, maxResponseBytes) : text, isCut };
  }
  // Bytes are counted, because the declared length can be missing, or be that of the compressed body.
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= maxResponseBytes) {
    const { done, value } = await reader.read();
    if (done) return { text: decoder.decode(Buffer.concat(chunks, bytes)), isCut: false };
    if (!isBytes(value))
      throw new NoResponseError(fetch, `returned a body whose parts are not bytes: ${kindOf(value)}`);
    bytes += value.byteLength;
    chunks.push(value);
  }
  // `cancel` is not awaited, because a stream may never confirm that it was cancelled.
  reader.cancel().catch(() => {});
  const read = Buffer.concat(chunks, bytes);
  const text = decoder.decode(read);
  const maxLength = decoder.decode(read.subarray(0, maxResponseBytes)).length;
  // If the text ends inside of the key, the key is not found there. So leave out an end as long as a key.
  return { text: key.maskBeginning(text, Math.min(maxLength, text.length - key.maxLength)), isCut: true };
}

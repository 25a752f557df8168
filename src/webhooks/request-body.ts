import { ConfigurationError, WebhookParseError } from '../errors.ts';

/** Bodies that the host parsed before we saw the request. */
const parsedBodies = new WeakMap<Request, { readonly body: unknown }>();

/** Keeps a body that the host has parsed, so that it is not written out and parsed again. */
export function keepParsedBody(request: Request, body: unknown): void {
  parsedBodies.set(request, { body });
}

/** What the request says about itself that rules it out, before a byte of the body is read. */
export function refusedMediaType(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') return 'Expected an uncompressed body';
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === '' || type === 'text/json' || /^application\/(?:[^/]+\+)?json$/.test(type)) return undefined;
  return 'Expected a body of type `application/json`';
}

/**
 * Reads a body, counting as it comes: the declared length may be missing or a lie.
 *
 * @returns bytes, or what the host parsed; undefined when it is longer than `maxBytes`
 */
export async function readBody(
  request: Request,
  maxBytes: number,
): Promise<{ readonly body: unknown } | undefined> {
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined;
  const parsed = parsedBodies.get(request);
  if (parsed !== undefined) return byteLength(parsed.body) > maxBytes ? undefined : parsed;
  if (request.bodyUsed) {
    throw new ConfigurationError('Expected an unread request, got one whose body was read before');
  }
  return request.body === null ? { body: '' } : readStream(request.body, maxBytes);
}

async function readStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly body: unknown } | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
      length += next.value.byteLength;
      if (length > maxBytes) return undefined;
      chunks.push(next.value);
    }
  } catch (error) {
    throw new WebhookParseError('Expected a whole body, got one that broke off', { cause: error });
  } finally {
    // Not cancelled: some hosts answer that by closing the connection before our answer is out.
    reader.releaseLock();
  }
  return { body: Buffer.concat(chunks, length) };
}

function byteLength(body: unknown): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.byteLength : 0;
}

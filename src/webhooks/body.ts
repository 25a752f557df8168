import { onAbort } from '../common/abort.ts';
import { quoteValue } from '../common/validation.ts';
import { ConfigurationError, WebhookParseError } from '../errors.ts';

export function findMediaTypeError(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
    return `Expected an uncompressed body, got the \`content-encoding\` ${quoteValue(encoding)}`;
  }
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === '' || type === 'text/json' || /^application\/(?:[^/]+\+)?json$/.test(type)) return undefined;
  return `Expected the \`content-type\` to be \`application/json\`, got ${quoteValue(type)}`;
}

/** Keeps bodies that the host has parsed already, so that they are not serialized and parsed again. */
const parsedBodies = new WeakMap<Request, { readonly body: unknown }>();

export function keepParsedBody(request: Request, body: unknown): void {
  parsedBodies.set(request, { body });
}

/** Returns undefined for a body that is too long, or that did not end before `deadline` aborted. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: unknown } | undefined> {
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined;
  const parsed = parsedBodies.get(request);
  if (parsed !== undefined) return getByteLength(parsed.body) > maxBytes ? undefined : parsed;
  if (request.bodyUsed) {
    throw new ConfigurationError('Expected an unread request, got one whose body was read before');
  }
  if (request.body === null) return { body: '' };
  try {
    return await readStream(request.body, maxBytes, deadline);
  } catch (cause) {
    if (deadline.aborted) return undefined;
    throw new WebhookParseError('The request body ended early', { cause });
  }
}

async function readStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: Uint8Array } | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  // Releasing the lock rejects the read that is under way.
  const unsubscribe = onAbort(deadline, () => reader.releaseLock());
  try {
    for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
      length += next.value.byteLength;
      if (length > maxBytes) return undefined;
      chunks.push(next.value);
    }
  } finally {
    unsubscribe();
    // If the stream were cancelled, some hosts would close the connection before our response is sent.
    reader.releaseLock();
  }
  return { body: Buffer.concat(chunks, length) };
}

function getByteLength(body: unknown): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.byteLength : 0;
}

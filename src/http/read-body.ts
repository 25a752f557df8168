/** True for a body that is its own size: what is decompressed while it is read can be a thousand times longer. */
function declaredBytes(headers: Headers): number | undefined {
  const declared = headers.get('content-length');
  return declared === null || headers.has('content-encoding') ? undefined : Number(declared);
}

async function readCounted(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      // Not waited for: a stream may never answer.
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * Reads a body as text, and no further than `maxBytes`.
 *
 * @returns undefined when the body is longer
 */
export async function readBody(response: Response, maxBytes: number): Promise<string | undefined> {
  const { headers, body } = response;
  const bytes = declaredBytes(headers);
  if (bytes !== undefined && bytes > maxBytes) {
    body?.cancel().catch(() => {});
    return undefined;
  }
  // Counting costs time that an ordinary answer need not pay for; what is no stream can't be counted while it is read.
  if (bytes !== undefined || typeof body?.getReader !== 'function') {
    const text = await response.text();
    return text.length > maxBytes ? undefined : text;
  }
  return await readCounted(body, maxBytes);
}

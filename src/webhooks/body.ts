import { kindOf } from '../common/validation.ts';
import { WebhookParseError } from '../errors.ts';

const BYTE_ORDER_MARK = 0xfeff;
// Fatal, since a replacement character inside an id would make two events one. It drops a byte order mark itself.
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** JSON of a body given as text or bytes; anything else is taken as parsed already. */
export function decodeBody(body: unknown): unknown {
  if (typeof body === 'string') {
    return parseJson(body.charCodeAt(0) === BYTE_ORDER_MARK ? body.slice(1) : body);
  }
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return parseJson(decodeUtf8(body));
  return body;
}

function decodeUtf8(bytes: ArrayBuffer | ArrayBufferView): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new WebhookParseError('Expected `body` to be UTF-8, got invalid bytes', { cause: error });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WebhookParseError(`Expected \`body\` to be JSON, got ${kindOf(text)}`, { cause: error });
  }
}

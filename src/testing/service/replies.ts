import type { KnownErrorCode } from '../../schemas/api-error.ts';
import type { OpenEnum } from '../../schemas/record.ts';

/** One answer, before a transport turns it into bytes. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One entry of the service's `errors` array. */
export interface ServiceErrorItem {
  readonly code: OpenEnum<KnownErrorCode>;
  readonly message: string;
}

/** A refusal; the server turns it into the error body of the endpoint. */
export class ServiceError extends Error {
  readonly status: number;
  readonly errors: readonly ServiceErrorItem[];

  constructor(status: number, errors: ServiceErrorItem | readonly ServiceErrorItem[]) {
    const items = Array.isArray(errors) ? errors : [errors];
    super(items.map((item) => item.message).join('; '));
    this.status = status;
    this.errors = items;
  }
}

/** An answer with a JSON body. */
export function jsonReply(status: number, body: unknown, headers: Reply['headers'] = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

/** The error body of an endpoint: the bulk endpoint has an envelope of its own (service.md 7). */
export function errorReply(isBulk: boolean, status: number, errors: readonly ServiceErrorItem[]): Reply {
  if (!isBulk) return jsonReply(status, { errors, data: null });
  return jsonReply(status, { status: 'error', summary: null, data: null, error: errors[0] ?? null });
}

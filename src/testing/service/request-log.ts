import type { EndpointName } from '../../endpoints.ts';
import type { FailureKind } from './failures.ts';

/** One request as the fake saw it. */
export interface RecordedRequest {
  /** The endpoint of the table; `undefined` when none answers at that path and method. */
  readonly endpoint: EndpointName | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Path with the base, percent-encoded as it was sent. */
  readonly path: string;
  /** Query parameters by name. */
  readonly query: Readonly<Record<string, string>>;
  /** Parsed when it was JSON, else the text; `undefined` when there was none. */
  readonly body: unknown;
  /** Names in lower case; never the key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch on the fake's clock. */
  readonly receivedAtMs: number;
  /** The answer's `x-request-id`. */
  readonly requestId: string;
  /** The answer's status; `null` while there is none, or when the connection broke. */
  readonly status: number | null;
  /** How the request was made to fail, unless by a status alone. */
  readonly failure: FailureKind | undefined;
}

/** The requests that a fake remembers: all of them, or the latest ones. */
export class RequestLog {
  readonly #limit: number;
  /** Oldest first. */
  readonly entries: RecordedRequest[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Remembers a request, and forgets the oldest one when there are too many. */
  add(entry: RecordedRequest): void {
    this.entries.push(entry);
    if (this.entries.length > this.#limit) this.entries.shift();
  }
}

/** A body as a reader wants to see it. */
export function readableBody(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Headers without the one that holds the key. */
export function headersWithoutKey(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name !== 'authorization'));
}

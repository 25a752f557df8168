import type { World } from '../world.ts';

/** A request that reached its endpoint, not yet checked against the endpoint's rules. */
export interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

/** What an endpoint answers. */
export interface Answer {
  readonly status: number;
  /** Sent as JSON. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Carries a request out; refusals are thrown as `ServiceError`. */
export type Handler = (call: Call, world: World) => Answer;

/** The envelope of every success but the bulk one (service.md 4). */
export function success(status: number, data: unknown): Answer {
  return { status, body: { data } };
}

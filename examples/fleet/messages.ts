/** The task of a worker, which the supervisor passes as JSON in the first argument. */
export interface WorkerTask {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly secret: string;
  readonly redisUrl: string;
  /** The prefix of every key in Redis. */
  readonly keyPrefix: string;
  readonly workers: number;
  /** The trackers that this worker imports. */
  readonly trackingNumbers: readonly string[];
}

/** Messages from a worker to the supervisor. */
export type WorkerMessage =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'created'; readonly trackingNumbers: readonly string[] }
  | {
      readonly kind: 'imported';
      readonly created: number;
      readonly requests: number;
      readonly refused: number;
      /** The number of requests that took more than half a second; the service may refuse such a request or a later one. */
      readonly slow: number;
    }
  | { readonly kind: 'handled'; readonly events: number };

/** Messages from the supervisor to a worker. */
export type SupervisorMessage = 'import' | 'finish';

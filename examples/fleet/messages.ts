/** What the supervisor tells a worker, as JSON in its first argument. */
export interface WorkerTask {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly secret: string;
  readonly redisUrl: string;
  /** Put before every key in Redis. */
  readonly keyPrefix: string;
  readonly workers: number;
  /** The worker's part of what is to be imported. */
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
      /** Requests that took longer than a token is held without a response. */
      readonly slow: number;
    }
  | { readonly kind: 'handled'; readonly events: number };

/** What the supervisor tells a worker to do next. */
export type SupervisorMessage = 'import' | 'finish';

/**
 * Where the receivers of a fleet remember events. With `transaction`, each callback marks its event in its own transaction;
 * receivers "by hand" do not use this package.
 */
export type InboxKind =
  | 'redis'
  | 'ioredis'
  | 'redis by hand'
  | 'postgres'
  | 'transaction'
  | 'postgres by hand';

/** The configuration of a receiver process, as JSON in its first argument. */
export interface ReceiverConfig {
  readonly inbox: InboxKind;
  readonly serviceUrl: string;
  /** Prefix of the keys in Redis, or the schema in PostgreSQL; no other fleet uses it. */
  readonly namespace: string;
  /** File that takes one line for everything that must survive a SIGKILL. */
  readonly journal: string;
}

/** The secret that sender and receivers share. */
export const SECRET = 'secret-of-the-fleet';

/** The message of a receiver to its fleet once it listens. */
export interface Listening {
  readonly port: number;
}

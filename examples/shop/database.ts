// Opens the database: PostgreSQL if there is a URL, else PGlite, a PostgreSQL inside this process that keeps its data in a folder.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Transaction } from '@electric-sql/pglite';
import pg from 'pg';

export interface Queries {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}
export interface Database extends Queries {
  /** Commits if the work resolves, and rolls back if it rejects. */
  transaction(work: (transaction: Queries) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** The columns `…_taken_at` say when a job last took a row, so that no other process takes it at the same time. */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS orders (
    id text PRIMARY KEY, -- random, because whoever knows it sees the page; also the clientTrackerId of the tracker
    number text NOT NULL UNIQUE, -- the shop's own number
    email text NOT NULL,
    parcel jsonb NOT NULL, -- what the service gets: the tracking number, and what the courier needs
    placed_at timestamptz NOT NULL DEFAULT now(),
    has_tracker boolean NOT NULL DEFAULT false,
    tracker_taken_at timestamptz NOT NULL DEFAULT '-infinity',
    refused text, -- why the order gets no tracker
    status jsonb,
    estimate jsonb,
    proof jsonb,
    results_taken_at timestamptz NOT NULL DEFAULT now(),
    stopped_at timestamptz -- when the service was found to have stopped tracking
  )`,
  'CREATE INDEX IF NOT EXISTS orders_to_track ON orders (placed_at) WHERE NOT has_tracker AND refused IS NULL',
  'CREATE INDEX IF NOT EXISTS orders_to_check ON orders (results_taken_at) WHERE has_tracker',
  'CREATE TABLE IF NOT EXISTS events (key text PRIMARY KEY, order_id text NOT NULL REFERENCES orders, event jsonb NOT NULL)',
  'CREATE INDEX IF NOT EXISTS events_by_order ON events (order_id)',
  `CREATE TABLE IF NOT EXISTS mails (
    order_id text NOT NULL REFERENCES orders,
    milestone text NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT now(),
    mail_taken_at timestamptz NOT NULL DEFAULT '-infinity',
    sent_at timestamptz,
    PRIMARY KEY (order_id, milestone) -- at most one mail for each status
  )`,
  'CREATE INDEX IF NOT EXISTS mails_to_send ON mails (queued_at) WHERE sent_at IS NULL',
];

export async function openDatabase(url: string | undefined, folder = 'data'): Promise<Database> {
  const db = url ? openPostgres(url) : await openFolder(folder);
  for (const statement of TABLES)
    await db.transaction(async (transaction) => {
      // Two processes that create a table at once fail. If a transaction locked several tables, it could deadlock with a webhook.
      await transaction.query('SELECT pg_advisory_xact_lock(20260304)');
      await transaction.query(statement);
    });
  return db;
}

function openPostgres(connectionString: string): Database {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 5_000 });
  pool.on('error', console.error); // idle connections
  pool.on('connect', (connection) => connection.on('error', console.error)); // connections in a transaction
  return {
    query: async (text, values) => (await pool.query(text, values)).rows,
    close: () => pool.end(),
    async transaction(work) {
      const connection = await pool.connect();
      try {
        await connection.query('BEGIN');
        await work({ query: async (text, values) => (await connection.query(text, values)).rows });
        await connection.query('COMMIT');
        connection.release();
      } catch (error) {
        connection.release(true); // closes the connection, so that the database rolls back
        throw error;
      }
    },
  };
}

async function openFolder(folder: string): Promise<Database> {
  const unlock = lockFolder(folder);
  const { PGlite } = await import('@electric-sql/pglite'); // large, so loaded only if needed
  const lite = await PGlite.create(join(folder, 'pglite'));
  const queries = (on: Pick<Transaction, 'query'>): Queries => ({
    query: async <Row>(text: string, values?: unknown[]) => (await on.query<Row>(text, values)).rows,
  });
  return {
    ...queries(lite),
    transaction: (work) => lite.transaction((transaction) => work(queries(transaction))),
    close: () => lite.close().finally(unlock),
  };
}

/**
 * Keeps other processes away from the folder, because two of them lose data without an error. Each process writes its own lock before
 * it looks for others, so of two that start at once, at least one sees the other. Locks of dead processes are removed.
 */
function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  const ownLock = resolve(folder, `${process.pid}.lock`);
  writeFileSync(ownLock, '');
  const unlock = () => rmSync(ownLock, { force: true });
  for (const name of readdirSync(folder)) {
    const lock = resolve(folder, name);
    if (!/^\d+\.lock$/.test(name) || lock === ownLock) continue;
    const pid = Number.parseInt(name, 10);
    if (isRunning(pid)) {
      unlock();
      const advice = `Stop it, or set DATABASE_URL to a PostgreSQL. If process ${pid} is not a shop, delete ${lock}`;
      throw new Error(`The shop of process ${pid} uses the folder ${resolve(folder)}. ${advice}`);
    }
    rmSync(lock, { force: true });
  }
  return unlock;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0); // sends no signal
  } catch (error) {
    return Object(error).code === 'EPERM'; // a process of another user
  }
}

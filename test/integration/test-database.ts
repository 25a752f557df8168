import { randomUUID } from 'node:crypto';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import pg from 'pg';

/** An empty database of a test's own. */
export interface TestDatabase {
  readonly url: string;
  /** As many connections of one client can work at the same time. */
  readonly maxConnections: number;
  /** Drops the database, and ends the connections that are still open. */
  drop(): Promise<void>;
}

/** Creates a database on a server. */
export async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  return {
    url: new URL(`/${name}`, serverUrl).href,
    maxConnections: 12,
    drop: async () => {
      // The server waits up to 5 s for connections that are just ending. To cut them off makes an error in their pool.
      await admin
        .query(`DROP DATABASE ${name}`)
        .catch(() => admin.query(`DROP DATABASE ${name} WITH (FORCE)`));
      await admin.end();
    },
  };
}

/**
 * Creates a PostgreSQL inside this process. It has a single connection, which its clients use in turns, one transaction after
 * the other.
 */
export async function createEmbeddedDatabase(): Promise<TestDatabase> {
  const db = await PGlite.create();
  const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 50 });
  await server.start();
  return {
    url: `postgres://postgres@${server.getServerConn()}/postgres`,
    maxConnections: 1,
    drop: async () => {
      await server.stop();
      await db.close();
    },
  };
}

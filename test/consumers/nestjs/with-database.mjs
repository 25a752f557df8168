// Runs a command while `DATABASE_URL` names a PostgreSQL inside this process, which has the tables of the recipe.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

const [command] = process.argv.slice(2);
const db = await PGlite.create();
await db.exec(readFileSync('schema.sql', 'utf8'));
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 50 });
await server.start();
const env = { ...process.env, DATABASE_URL: `postgres://postgres@${server.getServerConn()}/postgres` };
const [code] = await once(spawn(command, { shell: true, stdio: 'inherit', env }), 'exit');
await server.stop();
await db.close();
process.exitCode = code ?? 1;

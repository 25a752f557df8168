// Starts the parts of the shop that the command line names, or all of them, and ends them on SIGTERM.
// npm does not pass SIGTERM on, so in production run `node --import tsx main.ts` instead of `npm start`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { TrackingClient } from 'tracking-client';
import { openDatabase } from './database.ts';
import { sendMails } from './mails.ts';
import { reconcile } from './reconcile.ts';
import { createTrackers } from './trackers.ts';
import { webRoutes } from './web.ts';
import { createReceiver } from './webhooks.ts';

const PARTS = ['web', 'receiver', 'trackers', 'mails', 'reconcile'];
const parts = process.argv.length > 2 ? process.argv.slice(2) : PARTS;
const unknownPart = parts.find((part) => !PARTS.includes(part));
if (unknownPart !== undefined) throw new Error(`Expected some of ${PARTS.join(', ')}, got ${unknownPart}`);

function readSetting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`Set the environment variable ${name}`);
  return value;
}
const client = new TrackingClient(); // reads TRACKING_BASE_URL and TRACKING_API_KEY
const webhookSecret = readSetting('TRACKING_WEBHOOK_SECRET');
const staffToken = readSetting('STAFF_TOKEN');
const port = Number(process.env['PORT'] ?? 3000);
const shopUrl = process.env['SHOP_URL'] ?? `http://localhost:${port}`;

const db = await openDatabase(process.env['DATABASE_URL']);
const receive = createReceiver(db, webhookSecret);
const app = new Hono();
if (parts.includes('receiver')) app.all('/webhooks', (context) => receive(context.req.raw));
if (parts.includes('web')) app.route('/', webRoutes(db, staffToken));
const server = createServer(getRequestListener(app.fetch));
if (app.routes.length > 0) server.listen(port);

const stopping = new AbortController();
const { signal } = stopping;

async function repeat(part: string, seconds: number, job: () => Promise<void>): Promise<void> {
  while (parts.includes(part) && !signal.aborted) {
    await job().catch((error) => signal.aborted || console.error(`${part}:`, error));
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
  }
}
const jobs = [
  repeat('trackers', 1, () => createTrackers(db, client, signal)),
  repeat('mails', 1, () => sendMails(db, shopUrl, signal)),
  repeat('reconcile', 3600, () => reconcile(db, client, signal)),
];
console.log(`Started ${parts.join(', ')}${server.listening ? ` on port ${port}` : ''}`);

async function shutDown(): Promise<void> {
  stopping.abort();
  await receive.close({ timeoutMs: 5_000 });
  if (server.listening) {
    setTimeout(() => server.closeAllConnections(), 2_000).unref(); // for clients that send nothing
    await once(server.close(), 'close');
  }
  await Promise.all(jobs);
  await db.close();
}
for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => signal.aborted || shutDown());

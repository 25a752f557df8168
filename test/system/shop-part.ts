// Runs one round of a part of examples/shop, which can kill its own process at a point of the code. Used by shop-crashes.test.ts.
import { appendFileSync } from 'node:fs';
import { TrackingClient } from 'tracking-client';
import { type Database, openDatabase, type Queries } from '../../examples/shop/database.ts';
import { sendMails } from '../../examples/shop/mails.ts';
import { reconcile } from '../../examples/shop/reconcile.ts';
import { createTrackers } from '../../examples/shop/trackers.ts';
import { webRoutes } from '../../examples/shop/web.ts';
import { createReceiver } from '../../examples/shop/webhooks.ts';

export interface Plan {
  readonly part: 'web' | 'receiver' | 'trackers' | 'mails' | 'reconcile';
  /** Words of a statement, `COMMIT`, `request` or `send`. Default: the process lives. */
  readonly killAt?: { readonly when: 'before' | 'after'; readonly what: string };
  /** Of the tracking service. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly databaseUrl?: string;
  /** For the data without `databaseUrl`. */
  readonly folder: string;
  readonly secret: string;
  /** The body of a webhook, or of an order to place. */
  readonly body?: string;
  /** A file that gets a line for each mail. */
  readonly mailbox: string;
}

/** Takes a step, and kills the process before or after it if the plan says so. */
async function passing<Result>({ killAt }: Plan, step: string, take: () => Promise<Result>): Promise<Result> {
  const isHere = killAt !== undefined && step.includes(killAt.what);
  if (isHere && killAt.when === 'before') process.kill(process.pid, 'SIGKILL');
  const result = await take();
  if (isHere && killAt.when === 'after') process.kill(process.pid, 'SIGKILL');
  return result;
}

function breakable(plan: Plan, db: Database): Database {
  const wrap = (queries: Queries): Queries => ({
    query: (text, values) => passing(plan, text, () => queries.query(text, values)),
  });
  const nothing = async () => {};
  return {
    ...wrap(db),
    async transaction(work) {
      await db.transaction(async (transaction) => {
        await work(wrap(transaction));
        if (plan.killAt?.when === 'before') await passing(plan, 'COMMIT', nothing);
      });
      if (plan.killAt?.when === 'after') await passing(plan, 'COMMIT', nothing);
    },
    close: () => db.close(),
  };
}

/** Returns the status and the body of the response; nothing for a job. */
export async function runPart(plan: Plan): Promise<string> {
  const { part, baseUrl, apiKey, databaseUrl, folder, secret, body = '', mailbox } = plan;
  const db = breakable(plan, await openDatabase(databaseUrl, folder));
  const send = (url: string, init: RequestInit) => passing(plan, 'request', () => fetch(url, init));
  const client = new TrackingClient({ baseUrl, apiKey, fetch: send, logLevel: 'silent' });
  const post = (bearer: string) => ({
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body,
  });
  const parts = {
    web: () => webRoutes(db, 'staff').request('/staff/orders', post('staff')),
    receiver: () => createReceiver(db, secret)(new Request('http://shop.test/webhooks', post(secret))),
    trackers: () => createTrackers(db, client),
    mails: () =>
      sendMails(db, 'https://shop.test', undefined, ({ idempotencyKey }) =>
        passing(plan, 'send', async () => appendFileSync(mailbox, `${idempotencyKey}\n`)),
      ),
    reconcile: () => reconcile(db, client),
  };
  try {
    const response = await parts[part]();
    return response === undefined ? '' : `${response.status} ${await response.text()}`;
  } finally {
    await db.close();
  }
}

// Set only in a process of its own.
const given = process.env['SHOP_PLAN'];
if (given !== undefined) await runPart(JSON.parse(given));

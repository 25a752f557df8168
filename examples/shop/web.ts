// Serves the page of an order for its customer, and places and lists orders for the staff.
import { randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import type { Database } from './database.ts';
import { type Order, orderPage } from './page.ts';

const READ = `SELECT number, parcel, status, estimate,
  ARRAY(SELECT event FROM events WHERE order_id = orders.id) AS events FROM orders WHERE id = $1`;

/** Placing the same number again returns the same order. Only an order that was refused gets the new parcel, and is tried again. */
const PLACE = `INSERT INTO orders (id, number, email, parcel) VALUES ($1, $2, $3, $4)
ON CONFLICT (number) DO UPDATE SET refused = NULL,
  parcel = CASE WHEN orders.refused IS NULL THEN orders.parcel ELSE excluded.parcel END
RETURNING id`;

/** The newest orders, with the refused ones first. */
const LIST = `SELECT number, id, placed_at, has_tracker, refused, status, proof FROM orders
ORDER BY refused IS NULL, placed_at DESC LIMIT 200`;

const isText = (value: unknown) => typeof value === 'string' && value !== '';

export function webRoutes(db: Database, staffToken: string): Hono {
  const app = new Hono();

  app.get('/orders/:id', async (context) => {
    const [order] = await db.query<Order>(READ, [context.req.param('id')]);
    return order === undefined ? context.text('Not found', 404) : context.html(orderPage(order));
  });

  app.use('/staff/*', bearerAuth({ token: staffToken }));

  app.post('/staff/orders', async (context) => {
    const { number, email, parcel } = Object(await context.req.json().catch(() => undefined));
    if (![number, email, parcel?.trackingNumber].every(isText))
      return context.json({ error: 'Expected the texts number, email and parcel.trackingNumber' }, 400);
    const values = [randomUUID(), number, email, JSON.stringify(parcel)];
    const [order] = await db.query<{ id: string }>(PLACE, values);
    return context.json({ id: order?.id, page: `/orders/${order?.id}` }, 201);
  });

  app.get('/staff/orders', async (context) => context.json(await db.query(LIST)));

  return app;
}

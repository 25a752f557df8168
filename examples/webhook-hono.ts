// Receives webhooks with Hono on loopback HTTP, without an API key: messages with events, a proof of delivery, an unknown topic,
// and an event that keeps failing. One callback gets all new events of a message in order. Prints the response to each webhook.
// Copy to-copy/hono-webhooks.ts into your app. Run: npx tsx examples/webhook-hono.ts
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import pc from 'picocolors';
import { buildEvent, buildProofOfDelivery, buildWebhookMessage } from 'tracking-client/testing';
import { createApp } from './to-copy/hono-webhooks.ts';

const secret = 'whsec-example';

const { app, close } = createApp([secret, 'whsec-of-last-month'], {
  onNews: ({ events }) => {
    for (const event of events) {
      if (event.eventId === 'poison') throw new Error('this event cannot be stored');
      console.log(`  ${(event.occurrenceDatetime ?? '').padEnd(25)} ${event.status ?? event.statusCode}`);
    }
  },
  onSignature: ({ data }) => console.log(`  signed for: ${data.content?.downloadUrl}`),
});
const server = createServer(getRequestListener(app.fetch));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
// A server that listens on TCP has an address of this form.
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
console.log(`Hono listens on ${url}`);

async function send(title: string, body: unknown, bearer = secret): Promise<void> {
  console.log(`\n${pc.bold(title)}`);
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  console.log(pc.dim(`  ${response.status} ${await response.text()}`));
}

const delivery = buildWebhookMessage();
const poison = buildWebhookMessage({ events: [buildEvent({ eventId: 'poison' })] }, { seed: 'poison' });

await send('Three events, newest first: the callback gets them oldest first', { trackings: [delivery] });
await send('The same webhook again: no event is handled twice', { trackings: [delivery] });
await send('The same events in the flat shape: no event is handled twice', {
  trackerId: delivery.tracker.trackerId,
  events: delivery.events,
});
await send('A proof of delivery', { trackings: [buildProofOfDelivery()] });
await send('An unknown topic', { trackings: [{ metadata: { topic: 'tracking/weather' } }] });
await send('A broken item and a valid one', {
  trackings: [{ events: 'many' }, buildWebhookMessage({}, { seed: 2 })],
});
await send('An event that fails', { trackings: [poison] });
await send('It comes again and fails for the last time', { trackings: [poison] });
await send('A webhook with a wrong secret', { trackings: [delivery] }, 'guessed');
await close();
server.close();
server.closeAllConnections();

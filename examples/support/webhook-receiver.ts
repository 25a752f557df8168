// A webhook receiver on loopback HTTP: the webhook handler on `node:http`, and counts of its events.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from 'tracking-client/webhooks';

/** Numbers of events. */
export interface ReceivedCounts {
  received: number;
  handled: number;
  duplicates: number;
}

/** A running receiver. */
export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly counts: Readonly<ReceivedCounts>;
}

/**
 * Starts a receiver.
 *
 * @param secret - the secret that senders must send
 * @param onChange - called with the counts after each webhook
 */
export async function startReceiver(
  secret: string,
  onChange: (counts: Readonly<ReceivedCounts>) => void,
): Promise<WebhookReceiver> {
  const counts: ReceivedCounts = { received: 0, handled: 0, duplicates: 0 };
  const webhooks = createWebhookHandler({
    secret,
    store: new MemoryDedupeStore(),
    // Your app would save the event here. The handler calls this once for each event.
    onEvent: () => {},
    onReport: ({ handled, duplicates }) => {
      counts.received += handled + duplicates;
      counts.handled += handled;
      counts.duplicates += duplicates;
      onChange(counts);
    },
  });
  const server = createServer(toNodeHandler(webhooks));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    counts,
    async [Symbol.asyncDispose]() {
      await webhooks.close();
      server.close().closeAllConnections();
    },
  };
}

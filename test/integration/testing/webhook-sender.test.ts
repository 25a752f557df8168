import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createFakeTrackingService, createWebhookSender } from '../../../src/testing/index.ts';

const NUMBER = 'RR123456785CN';

describe('createWebhookSender with a URL', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  /** A receiver that keeps what it got; returns its URL. */
  async function receive(got: string[]): Promise<string> {
    const server = createServer(async (message, response) => {
      let body = '';
      for await (const chunk of message) body += String(chunk);
      got.push(`${message.method} ${message.headers.authorization} ${body}`);
      response.writeHead(200).end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // `address()` is an object for every server that listens on a port.
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
  }

  async function withPush() {
    const fake = createFakeTrackingService();
    await fake.fetch(`${fake.baseUrl}/trackers`, {
      method: 'POST',
      headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
      body: JSON.stringify({ trackingNumber: NUMBER }),
    });
    fake.shipment(NUMBER).deliver({ eventId: 'a' });
    return fake;
  }

  it('a push → arrives over HTTP with its secret', async () => {
    const got: string[] = [];
    const sender = createWebhookSender({
      target: new URL(await receive(got)),
      secret: 'hush',
      fake: await withPush(),
    });
    expect(await sender.flush()).toMatchObject({ items: 1, accepted: 1 });
    expect(got).toEqual([expect.stringMatching(/^POST Bearer hush \{"trackings":\[.*"eventId":"a"/)]);
  });

  it('a URL without a server → not accepted, status null', async () => {
    const target = await receive([]);
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
    const fake = await withPush();
    const sender = createWebhookSender({ target, fake });
    expect(await sender.flush()).toMatchObject({ lost: 1, sent: [{ status: null }] });
    const url = `${fake.baseUrl}/trackers/${fake.trackers[0]?.trackerId}/webhook-history/download`;
    const history = await fake.fetch(url, { headers: { authorization: 'Bearer key' } });
    expect(await history.json()).toMatchObject({ metadata: { webhookUrl: target } });
  });
});

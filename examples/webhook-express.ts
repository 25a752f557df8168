// Receives webhooks with Express 5 on loopback HTTP, without an API key, and keeps the newest status of each parcel: a fake service
// sends each webhook three times, shuffled, and the database is down for the first two writes.
// Copy to-copy/express-webhooks.ts into your app. Run: npx tsx examples/webhook-express.ts
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pc from 'picocolors';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { createApp } from './to-copy/express-webhooks.ts';

const secret = 'whsec-example';
let databaseIsDownFor = 2;
const parcels = new Map<string, { readonly status: string; readonly at: Date }>();

const { app, close } = createApp(secret, {
  saveStatus: async (trackingNumber, status, at) => {
    if (databaseIsDownFor-- > 0) throw new Error('the database is down');
    const saved = parcels.get(trackingNumber);
    if (saved !== undefined && saved.at >= at)
      return console.log(`  ${pc.dim('older')} ${trackingNumber}: ${status}`);
    parcels.set(trackingNumber, { status, at });
    console.log(`  ${pc.green('saved')} ${trackingNumber}: ${status}`);
  },
});
const server = createServer(app);
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
// A server that listens on TCP has an address of this form.
const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
console.log(`Express listens on ${target}`);

const fake = createFakeTrackingService();
const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
await client.trackers.create({ trackingNumber: 'RR123456785CN' });
await client.trackers.create({ trackingNumber: 'LA680658838NL' });
fake
  .shipment('RR123456785CN')
  .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
  .deliver()
  .addEvent({ statusMilestone: 'out_for_delivery', status: 'Out for delivery, noted late' });
fake
  .shipment('LA680658838NL')
  .addEvent({ statusMilestone: 'out_for_delivery', location: 'SAN RAFAEL, CA 94901' });

const sender = createWebhookSender({ target, secret, fake, duplicates: 2, shuffle: true, until2xx: true });
console.log(`\nThe service checks the URL with HEAD: ${(await sender.probe()) ? 'it works' : 'it fails'}`);
console.log('It sends each webhook three times, and repeats each until a 2xx:');
const report = await sender.flush();

console.log(`\n${report.sent.length} requests for ${report.items} webhooks, ${report.lost} lost`);
console.log(
  `responses: ${report.sent.map(({ status }) => (status === 200 ? pc.green('200') : pc.yellow(`${status}`))).join(' ')}`,
);
for (const [trackingNumber, { status }] of parcels) console.log(`${trackingNumber} is now: ${status}`);

await close();
server.close();
server.closeAllConnections();

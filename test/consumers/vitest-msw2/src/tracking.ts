import { TrackingClient } from 'tracking-client';

/** The client as the shop is deployed with it; nothing here knows of tests. */
export const tracking = new TrackingClient({
  baseUrl: 'https://api.tracking.example/public/v1',
  apiKey: process.env['TRACKING_API_KEY'] ?? 'key-of-the-shop',
});

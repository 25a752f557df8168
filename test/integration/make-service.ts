import { onTestFinished } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { createFakeTrackingService, type FakeTrackingServiceOptions } from '../../src/testing/index.ts';

/** Starts a fake service that enforces its limits, and creates a client for it, with real HTTP between them. */
export async function makeService(
  options: FakeTrackingServiceOptions = {},
  clientOptions: TrackingClientOptions = {},
) {
  const fake = createFakeTrackingService(options);
  const server = await fake.listen();
  onTestFinished(() => server.close());
  const { url: baseUrl } = server;
  const client = new TrackingClient({ baseUrl, apiKey: fake.apiKey, logLevel: 'silent', ...clientOptions });
  return { fake, client };
}

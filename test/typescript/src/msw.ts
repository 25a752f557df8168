import { setupServer } from 'msw/node';
import { createFakeTrackingService } from 'tracking-client/testing';
import { type TrackingHandlersOptions, trackingHandlers } from 'tracking-client/testing/msw';

const fake = createFakeTrackingService();
const options: TrackingHandlersOptions = { baseUrl: new URL('https://tracking.test/public/v1') };
const handlers = trackingHandlers(fake, options);

export const server = setupServer(...handlers);
export const isUsed: boolean | undefined = handlers[0]?.isUsed;

export function misspelt(): void {
  // @ts-expect-error -- `baseURL`
  trackingHandlers(fake, { baseURL: 'https://tracking.test/public/v1' });
  // @ts-expect-error -- `isUnused`
  console.log(handlers[0]?.isUnused);
}

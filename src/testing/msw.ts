/**
 * Puts a fake service behind Mock Service Worker.
 *
 * @module tracking-client/testing/msw
 */

import { type HttpHandler, HttpResponse, http } from 'msw';
import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { type OptionShape, option } from '../common/option-schemas.ts';
import { trimSlashes } from '../common/urls.ts';
import { ENDPOINT_NAMES, endpoints } from '../endpoints.ts';
import type { FakeTrackingService } from './fake-tracking-service.ts';
import { HTTP_URL, isHttpUrl } from './options.ts';
import { perform, toFakeRequest } from './transports.ts';

/** Options of `trackingHandlers`. */
export interface TrackingHandlersOptions {
  /** Base URL of the code under test. Default: the base URL of the fake. */
  readonly baseUrl?: string | URL | undefined;
}

const handlersOptions = z.strictObject({
  baseUrl: option<string | URL>(HTTP_URL, isHttpUrl).optional(),
} satisfies OptionShape<TrackingHandlersOptions>);

const CREATE_HANDLER = { GET: http.get, POST: http.post, PATCH: http.patch };

/** Holds requests so that they are not garbage-collected: in MSW 2, the signal of a collected request never fires. */
const waiting = new Set<Request>();

async function respond(fake: FakeTrackingService, request: Request, basePath: string): Promise<Response> {
  const reply = await fake.serve(await toFakeRequest(request, basePath));
  // MSW 2 makes this response the `cause` of its error, so `cause.code` is set as it is with Node's `fetch`.
  if (reply.kind === 'reset') return Object.assign(HttpResponse.error(), { code: 'ECONNRESET' });
  if (reply.kind !== 'response') {
    waiting.add(request);
    request.signal.addEventListener('abort', () => waiting.delete(request), { once: true });
  }
  return perform(reply, request.signal);
}

/**
 * Creates request handlers for MSW 2 and 3: one for each endpoint, and one for everything else below a base URL. All of them
 * pass the request to the fake, so its planned failures also happen here, and a wrong path or method is a 404 or 405.
 *
 * @param fake - from `createFakeTrackingService`
 * @param options - `baseUrl`: the base URL that your code uses; default: the base URL of the fake
 * @returns handlers for `setupServer(...)` or `server.use(...)`
 * @throws ConfigurationError for an invalid option
 * @example
 * const fake = createFakeTrackingService();
 * const server = setupServer(...trackingHandlers(fake, { baseUrl: 'https://tracking.test/public/v1' }));
 * // Override a single endpoint:
 * server.use(http.get('https://tracking.test/public/v1/couriers', () => new HttpResponse(null, { status: 503 })));
 */
export function trackingHandlers(
  fake: FakeTrackingService,
  options: TrackingHandlersOptions = {},
): HttpHandler[] {
  const { origin, pathname } = new URL(checkOptions(handlersOptions, options).baseUrl ?? fake.baseUrl);
  const basePath = trimSlashes(pathname);
  const base = origin + basePath;
  const handle = ({ request }: { readonly request: Request }) => respond(fake, request, basePath);
  const ofEndpoints = ENDPOINT_NAMES.map((name) => {
    const { method, path } = endpoints[name];
    return CREATE_HANDLER[method](base + path.replace(/\{(\w+)\}/g, ':$1'), handle);
  });
  return [...ofEndpoints, http.all(`${base}/*`, handle)];
}

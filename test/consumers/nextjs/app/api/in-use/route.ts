import { tracking } from '../../../lib/tracking';

export const dynamic = 'force-dynamic';

/** Reports the tokens in use. Next.js puts routes and pages into different bundles, which must share one limiter. */
export function GET(): Response {
  return Response.json(tracking().rateLimits()['trackers.results'].inUse);
}

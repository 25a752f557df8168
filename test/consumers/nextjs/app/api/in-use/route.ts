import { tracking } from '../../../lib/tracking';

export const dynamic = 'force-dynamic';

/** The tokens that are out, as a route sees them: it is another bundle than the pages. */
export function GET(): Response {
  return Response.json(tracking().rateLimits()['trackers.results'].inUse);
}

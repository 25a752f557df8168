/**
 * Orders events and lists the known statuses, without zod and without modules of Node, so it also runs in browsers.
 *
 * @module tracking-client/events
 */

export {
  isNewerEvent,
  latestEvent,
  type OccurrenceDatetime,
  parseOccurrenceDatetime,
  sortEvents,
} from './order.ts';
export { STATUS_CATEGORIES, STATUS_CODES, STATUS_MILESTONES } from './statuses.ts';

import type { KnownStatusMilestone } from './statuses.ts';

/** English words for customers, for each milestone known today. */
export const MILESTONE_WORDS: Readonly<Record<KnownStatusMilestone, string>> = {
  pending: 'Waiting for news',
  info_received: 'Announced',
  in_transit: 'On its way',
  out_for_delivery: 'Out for delivery',
  failed_attempt: 'Delivery was tried',
  available_for_pickup: 'Ready for pickup',
  delivered: 'Delivered',
  exception: 'Held up',
};

/**
 * Describes a milestone in words for a customer.
 *
 * @param milestone - `statusMilestone` of a shipment or an event
 * @param words - a text for each milestone, for example in another language; default: `MILESTONE_WORDS`
 * @returns the text; for a milestone without one, its own letters in words
 * @example
 * describeMilestone('failed_attempt'); // 'Delivery was tried'
 * describeMilestone('held_at_customs'); // 'Held at customs'
 * describeMilestone('delivered', { delivered: 'Zugestellt' }); // 'Zugestellt'
 */
export function describeMilestone(
  milestone: string,
  words: Readonly<Record<string, string>> = MILESTONE_WORDS,
): string {
  const word = Object.hasOwn(words, milestone) ? words[milestone] : undefined;
  if (word !== undefined) return word;
  const letters = milestone.replace(/[_\s-]+/g, ' ').trim();
  return letters.charAt(0).toUpperCase() + letters.slice(1);
}

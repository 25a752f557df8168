import type { WebhookPush } from './webhook-queue.ts';

/** One body to send, once or more often. */
export interface Job {
  readonly pushes: readonly WebhookPush[];
  readonly body: string;
}

/** Undefined for a proof of delivery, which the flat shape does not have. */
function flatBody({ item }: WebhookPush): object | undefined {
  if (!('events' in item)) return undefined;
  const { trackerId, clientTrackerId } = item.tracker;
  return { trackerId, clientTrackerId, events: item.events };
}

/** The bodies that a sender makes of what waits. */
export function toJobs(pushes: readonly WebhookPush[], size: number, isFlat: boolean): Job[] {
  const jobs: Job[] = [];
  for (let start = 0; start < pushes.length; start += size) {
    const group = pushes.slice(start, start + size);
    const [first] = group;
    const flat = isFlat && first !== undefined ? flatBody(first) : undefined;
    const payload = flat ?? { trackings: group.map(({ item }) => item) };
    jobs.push({ pushes: group, body: JSON.stringify(payload) });
  }
  return jobs;
}

/** The same items in an order that only the random numbers decide. */
export function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}

import * as events from 'tracking-client/events';

const [first, second] = events.sortEvents([
  { eventId: 'b', occurrenceDatetime: '2026-03-02' },
  { eventId: 'a', occurrenceDatetime: '2026-03-01' },
]);
console.log(first.eventId, second.eventId, events.STATUS_MILESTONES[0]);

import type { Clock } from '../../common/timing.ts';
import type { Ticket } from '../../limiter/limiter.ts';
import { pauseMsOf } from '../../limiter/pause.ts';
import type { EndpointView } from './endpoint-view.ts';
import type { Lease, LeaseBook } from './lease-book.ts';

/** What a ticket of a shared bucket acts on. */
export interface TicketParts {
  readonly lease: Lease;
  readonly tokensLeft: number;
  /** The ticket of this process's own share, while Redis is down. */
  readonly local: Ticket | undefined;
  readonly leases: LeaseBook;
  readonly endpoint: EndpointView;
  readonly clock: Clock;
  readonly onPause: (until: number) => void;
  readonly onChange: () => void;
}

/** Permission for one request, whose life is written down for Redis. */
export function ticketOf(parts: TicketParts): Ticket {
  const { lease, local, leases, endpoint, clock, onChange } = parts;
  return {
    tokensLeft: Math.max(0, parts.tokensLeft),
    send: () => {
      leases.send(lease, clock.now());
      local?.send();
      onChange();
    },
    settle: (settlement) => {
      if (lease.state === 'sent' && settlement.status === 429) {
        parts.onPause(clock.now() + pauseMsOf(settlement));
      }
      const { announcedLimit } = settlement;
      leases.settle(lease, settlement, clock.now(), endpoint.isNewLimit(announcedLimit));
      local?.settle({ ...settlement, announcedLimit: endpoint.announcedShare(announcedLimit) });
      onChange();
    },
    cancel: () => {
      leases.giveBack(lease, clock.now());
      local?.cancel();
      onChange();
    },
  };
}

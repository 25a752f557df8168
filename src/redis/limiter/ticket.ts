import type { Clock } from '../../clock.ts';
import type { Ticket } from '../../limiter/limiter.ts';
import { type Lease, type LeaseBook, pauseMsOf } from './lease-book.ts';

/** What a ticket of a shared bucket acts on. */
export interface TicketParts {
  readonly lease: Lease;
  readonly tokensLeft: number;
  /** The ticket of this process's own share, while Redis is down. */
  readonly local: Ticket | undefined;
  readonly leases: LeaseBook;
  readonly clock: Clock;
  /** What the service announced last, or else the configured limit. */
  readonly knownLimit: () => number;
  /** This process's part of a limit. */
  readonly shareOf: (limit: number) => number;
  readonly onPause: (until: number) => void;
  readonly onChange: () => void;
}

/** Permission for one request, whose life is written down for Redis. */
export function ticketOf(parts: TicketParts): Ticket {
  const { lease, local, leases, clock, onChange } = parts;
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
      leases.settle(lease, settlement, clock.now(), parts.knownLimit());
      const { announcedLimit } = settlement;
      const ownLimit = announcedLimit === undefined ? undefined : parts.shareOf(announcedLimit);
      local?.settle({ ...settlement, announcedLimit: ownLimit });
      onChange();
    },
    cancel: () => {
      leases.giveBack(lease, clock.now());
      local?.cancel();
      onChange();
    },
  };
}

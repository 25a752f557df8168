import { raceAbort } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
import type { Config } from '../config/config.ts';
import { callEndpoint } from '../http/execute.ts';
import type { Courier } from '../schemas/courier.ts';

const KEPT_FOR_MS = 24 * 60 * 60 * 1000;

/** A courier with its texts as `foldText` returns them. */
export interface ListedCourier {
  readonly courier: Courier;
  readonly code: string;
  readonly name: string;
  readonly country: string;
}

/**
 * Removes what a search ignores: case, accents, and spaces at both ends. A value that is not a text, which the client may have kept
 * as it came, becomes an empty text.
 */
export function foldText(value: unknown): string {
  if (typeof value !== 'string') return '';
  const base = value.normalize('NFKD').replace(/[\u0300-\u036f]/g, '');
  // Upper case, because lower case keeps apart what is equal, such as the two small sigmas.
  return base.trim().replace(/\s+/g, ' ').toUpperCase();
}

function listCourier(courier: Courier): ListedCourier {
  const { courierCode, courierName, countryCode } = courier;
  return {
    courier,
    code: foldText(courierCode),
    name: foldText(courierName),
    country: foldText(countryCode),
  };
}

/** The list of couriers, and the same couriers by their folded codes. */
interface ReadCouriers {
  readonly listed: readonly ListedCourier[];
  readonly byCode: ReadonlyMap<string, ListedCourier>;
}

async function readList(config: Config): Promise<ReadCouriers> {
  const couriers = await callEndpoint(config, 'couriers.list', {}, undefined);
  const listed = couriers.map(listCourier);
  return { listed, byCode: new Map(listed.map((courier) => [courier.code, courier])) };
}

/** The couriers of the service, which are read once a day for all callers of a client. */
export class CourierList {
  #kept: { readonly list: Promise<ReadCouriers>; readonly requestedAt: number } | undefined;

  /**
   * @param config - the client; an error of the request names the place of the call that started it
   * @param signal - ends this wait, and not the request, because other callers may wait for it, too
   */
  async read(config: Config, signal: AbortSignal | undefined): Promise<ReadCouriers> {
    signal?.throwIfAborted();
    const now = systemClock.now();
    if (this.#kept === undefined || now - this.#kept.requestedAt >= KEPT_FOR_MS) {
      const kept = { list: readList(config), requestedAt: now };
      this.#kept = kept;
      // The next caller asks again.
      kept.list.catch(() => {
        if (this.#kept === kept) this.#kept = undefined;
      });
    }
    const { list } = this.#kept;
    return await (signal === undefined ? list : raceAbort(list, signal));
  }
}

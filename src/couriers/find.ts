import * as z from 'zod';
import { checkOptions, refuseOption } from '../common/check-options.ts';
import type { OptionShape } from '../common/option-schemas.ts';
import { CALL_SHAPE } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { Courier } from '../schemas/courier.ts';
import { type CourierList, foldText, type ListedCourier } from './courier-list.ts';

/** Options of `couriers.find`. */
export interface FindCouriersOptions {
  /** Also finds deprecated couriers. The service ignores their codes (docs/service.md 3.2). Default false. */
  readonly deprecated?: boolean | undefined;
  /**
   * A signal that aborts the call. The call then rejects with the signal's own reason; the request for the list goes on. Default:
   * none.
   */
  readonly signal?: AbortSignal | undefined;
}

const findOptions = z.strictObject({
  deprecated: z.boolean().default(false),
  signal: CALL_SHAPE.signal,
} satisfies OptionShape<FindCouriersOptions>);

const ENDS_IN_WORD = /[\p{L}\p{M}\p{N}]$/u;

function beginsWord(name: string, text: string): boolean {
  for (let index = name.indexOf(text); index >= 0; index = name.indexOf(text, index + 1))
    if (!ENDS_IN_WORD.test(name.slice(0, index))) return true;
  return false;
}

/** The ways in which a courier can fit a text, best first. */
const FITS: readonly ((courier: ListedCourier, text: string) => boolean)[] = [
  ({ code }, text) => code === text,
  ({ name }, text) => name === text,
  ({ name }, text) => beginsWord(name, text),
  ({ code, name }, text) => code.includes(text) || name.includes(text),
  ({ country }, text) => country === text,
];

/** All callers share the list, so a caller that changes a result must not change the list. */
function copyCourier(courier: Courier): Courier {
  const { requiredFields } = courier;
  return Array.isArray(requiredFields) ? { ...courier, requiredFields: [...requiredFields] } : { ...courier };
}

/** Couriers that fit equally well stay in the order of the service. */
export async function findCouriers(
  config: Config,
  list: CourierList,
  text: string,
  options: FindCouriersOptions,
): Promise<Courier[]> {
  const { deprecated, signal } = checkOptions(findOptions, options, undefined, config);
  if (typeof text !== 'string') refuseOption('text', 'a string', text);
  const { listed: couriers } = await list.read(config, signal);
  const folded = foldText(text);
  const ranked = couriers
    .filter(({ courier }) => deprecated || courier.isDeprecated !== true)
    .map((listed) => ({ listed, rank: FITS.findIndex((fits) => folded === '' || fits(listed, folded)) }))
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => a.rank - b.rank);
  return ranked.map(({ listed }) => copyCourier(listed.courier));
}

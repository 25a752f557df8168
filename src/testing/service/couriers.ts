import type { Courier } from '../../schemas/courier.ts';
import type { TrackerPayload } from '../trackers/tracker-state.ts';

/** A courier of the fake. */
export interface FakeCourier extends Courier {
  /** False where only later calls have results (service.md 1). Default true. */
  readonly supportsSynchronousFetch?: boolean;
}

function courier(
  courierCode: string,
  courierName: string,
  countryCode: string,
  isPost: boolean,
): FakeCourier {
  return {
    courierCode,
    courierName,
    website: null,
    isPost,
    countryCode,
    requiredFields: null,
    isDeprecated: false,
  };
}

/** The couriers every fake starts with. */
export function defaultCouriers(): FakeCourier[] {
  return [
    courier('us-post', 'USPS', 'US', true),
    courier('fr-post', 'La Poste', 'FR', true),
    { ...courier('cn-post', 'China Post', 'CN', true), supportsSynchronousFetch: false },
    {
      ...courier('nl-post', 'PostNL', 'NL', true),
      requiredFields: ['destinationPostCode', 'destinationCountryCode'],
    },
  ];
}

/** A courier without what only the fake knows of it. */
export function publicCourier({ supportsSynchronousFetch: _, ...courier }: FakeCourier): Courier {
  return courier;
}

/** What a caller told of a shipment. */
type Hints = Pick<TrackerPayload, 'courierCodes' | 'destinationPostCode' | 'destinationCountryCode'>;

/** An account with the courier is not something a request can give. */
function lacksRequiredField({ requiredFields }: FakeCourier, hints: Hints): boolean {
  const isLacking = (field: 'destinationPostCode' | 'destinationCountryCode') =>
    requiredFields?.includes(field) === true && hints[field] === null;
  return isLacking('destinationPostCode') || isLacking('destinationCountryCode');
}

/** False when every courier that was named asks for a field that was not given, so none of them answers. */
export function canAnswer(couriers: readonly FakeCourier[], hints: Hints): boolean {
  const named = couriers.filter((candidate) => hints.courierCodes.includes(candidate.courierCode));
  const areAllKnown = named.length > 0 && named.length === hints.courierCodes.length;
  return !areAllKnown || named.some((candidate) => !lacksRequiredField(candidate, hints));
}

/** False when none of the couriers can be asked while the caller waits. */
export function canAnswerAtOnce(couriers: readonly FakeCourier[], courierCodes: readonly string[]): boolean {
  const isSynchronous = (code: string) =>
    couriers.find((candidate) => candidate.courierCode === code)?.supportsSynchronousFetch ?? true;
  return courierCodes.length === 0 || courierCodes.some(isSynchronous);
}

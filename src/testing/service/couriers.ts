import type { Courier } from '../../schemas/courier.ts';
import type { Hints } from './trackers.ts';

/** A courier of the fake. */
export interface FakeCourier extends Courier {
  /** False for a courier whose results come with later calls only. Default true. */
  readonly supportsSynchronousFetch?: boolean;
}

export function createCouriers(): FakeCourier[] {
  const courier = (courierCode: string, courierName: string, countryCode: string): FakeCourier => ({
    courierCode,
    courierName,
    website: null,
    isPost: true,
    countryCode,
    requiredFields: null,
    isDeprecated: false,
  });
  const requiredFields = ['destinationPostCode', 'destinationCountryCode'];
  return [
    courier('us-post', 'USPS', 'US'),
    courier('fr-post', 'La Poste', 'FR'),
    { ...courier('cn-post', 'China Post', 'CN'), supportsSynchronousFetch: false },
    { ...courier('nl-post', 'PostNL', 'NL'), requiredFields },
  ];
}

export function toPublicCourier({ supportsSynchronousFetch: _, ...courier }: FakeCourier): Courier {
  return courier;
}

/** False when every named courier requires a field that is missing, so that none of them responds. */
export function canRespond(couriers: readonly FakeCourier[], hints: Hints): boolean {
  // Couriers may also require `courierAccount`, but no request has such a field, so it never counts as missing.
  const isMissing = (field: string) =>
    (field === 'destinationPostCode' || field === 'destinationCountryCode') && hints[field] === null;
  const lacksField = (code: string) =>
    couriers.find(({ courierCode }) => courierCode === code)?.requiredFields?.some(isMissing) === true;
  return hints.courierCodes.length === 0 || !hints.courierCodes.every(lacksField);
}

/** False when none of the named couriers, or else of those that know the number, responds while the caller waits. */
export function canRespondAtOnce(couriers: readonly FakeCourier[], hints: Hints, known: string[]): boolean {
  const courierCodes = hints.courierCodes.length > 0 ? hints.courierCodes : known;
  const isSynchronous = (code: string) =>
    couriers.find((candidate) => candidate.courierCode === code)?.supportsSynchronousFetch ?? true;
  return courierCodes.length === 0 || courierCodes.some(isSynchronous);
}

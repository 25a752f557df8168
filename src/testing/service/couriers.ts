// Specification: service.md 1, 4; public contract, "Records"
import type { Courier } from '../../schemas/courier.ts';
import type { Hints } from './trackers.ts';

/** A courier of the fake. */
export interface FakeCourier extends Courier {
  /** False where only later calls have results. Default true. */
  readonly supportsSynchronousFetch?: boolean;
}

export function defaultCouriers(): FakeCourier[] {
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

export function publicCourier({ supportsSynchronousFetch: _, ...courier }: FakeCourier): Courier {
  return courier;
}

/** False when every courier that was named asks for a field that was not given, so none of them responds. */
export function canRespond(couriers: readonly FakeCourier[], hints: Hints): boolean {
  // An account with the courier, the third field that one may ask for, is not something a request can give.
  const isMissing = (field: string) =>
    (field === 'destinationPostCode' || field === 'destinationCountryCode') && hints[field] === null;
  const isLacking = (code: string) =>
    couriers.find(({ courierCode }) => courierCode === code)?.requiredFields?.some(isMissing) === true;
  return hints.courierCodes.length === 0 || !hints.courierCodes.every(isLacking);
}

/** False when none of the couriers that were named, or else know the number, can be asked while the caller waits. */
export function canRespondAtOnce(couriers: readonly FakeCourier[], hints: Hints, known: string[]): boolean {
  const courierCodes = hints.courierCodes.length > 0 ? hints.courierCodes : known;
  const isSynchronous = (code: string) =>
    couriers.find((candidate) => candidate.courierCode === code)?.supportsSynchronousFetch ?? true;
  return courierCodes.length === 0 || courierCodes.some(isSynchronous);
}

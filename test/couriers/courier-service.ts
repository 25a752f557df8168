import type { Courier, TrackingClientOptions } from '../../src/index.ts';
import { makeClient, type Step } from '../support/make-client.ts';

export function makeCourier(courierCode: string, fields: Partial<Courier> = {}): Courier {
  return {
    courierCode,
    courierName: courierCode,
    countryCode: null,
    requiredFields: null,
    isDeprecated: false,
    ...fields,
  };
}

export const COURIERS: readonly Courier[] = [
  makeCourier('us-post', { courierName: 'USPS', countryCode: 'US' }),
  makeCourier('fr-post', { courierName: 'La Poste', countryCode: 'FR' }),
  makeCourier('nl-post', {
    courierName: 'PostNL',
    countryCode: 'NL',
    requiredFields: ['destinationPostCode', 'destinationCountryCode'],
  }),
  makeCourier('br-post', { courierName: 'Correios São Paulo ', countryCode: 'BR' }),
  makeCourier('posten', { courierName: 'Posten Åland', countryCode: 'ALA' }),
  makeCourier('gr-elta', { courierName: 'ΕΛΤΑΣ Courier', countryCode: 'GR' }),
  makeCourier('jp-post', { courierName: '日本郵便', countryCode: 'JP' }),
  makeCourier('ru-post', { courierName: 'Почта России', countryCode: 'RU' }),
  makeCourier('in-post', { courierName: 'भारतीय डाक', countryCode: 'IN' }),
  makeCourier('x-post', { courierName: 'X Express', countryCode: null }),
  makeCourier('old-post', { courierName: 'Old Post', countryCode: 'US', isDeprecated: true }),
];

/** A client whose service answers every request with the couriers, or follows the script. */
export function courierService(script?: Step | readonly Step[], options?: TrackingClientOptions) {
  return makeClient(script ?? listOf(COURIERS), options);
}

export function listOf(couriers: readonly unknown[]): Step {
  return { body: { data: { couriers } } };
}

export const readCodes = (couriers: readonly Courier[]) => couriers.map(({ courierCode }) => courierCode);

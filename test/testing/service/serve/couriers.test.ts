import { expect, it } from 'vitest';
import { TrackingClient } from '../../../../src/index.ts';
import { makeFake } from '../../make-fake.ts';

function makeCouriers() {
  const { fake } = makeFake();
  return new TrackingClient({ baseUrl: fake.baseUrl, apiKey: 'key', fetch: fake.fetch }).couriers;
}

it.each([
  ['a post code and a country', 'nl-post', ['missing destinationPostCode', 'missing destinationCountryCode']],
  ['a post code, in the form of older lists', 'jp-post', ['missing destinationPostCode']],
  ['the number of an account', 'account-express', ['not_sendable courierAccount']],
  ['another code, because it is deprecated', 'old-post', ['deprecated courierCode']],
  ['another code, because it is unknown', 'typo-post', ['unknown courierCode']],
  ['nothing, with null', 'us-post', []],
  ['nothing, with an empty list', 'no-fields-express', []],
])('the list of the fake → a courier that needs %s', async (_, courierCode, expected) => {
  const problems = await makeCouriers().check({ trackingNumber: 'LA680658838NL', courierCode });
  expect(problems.map(({ problem, field }) => `${problem} ${field}`)).toEqual(expected);
});

it.each([
  ['a name that ends with a space', 'account express', 'account-express'],
  ['a name with an accent, and a country of three letters', 'swe', 'no-fields-express'],
  ['a name of another script', '日本', 'jp-post'],
])('the list of the fake → a courier with %s', async (_, text, courierCode) => {
  expect(await makeCouriers().find(text)).toMatchObject([{ courierCode }]);
});

it('the list of the fake → a courier without a country', async () => {
  expect(await makeCouriers().find('account')).toMatchObject([{ countryCode: null }]);
});

import { describe, expect, it } from 'vitest';
import { codeOf, makeFake } from '../make-fake.ts';

describe('authentication', () => {
  const ask = (header: string, options = {}) =>
    makeFake(options).call('GET', '/couriers', undefined, { authorization: header });

  it.each([
    ['', 400, 'auth_missing_header'],
    ['some-key', 400, 'auth_invalid_header'],
    ['Basic some-key', 400, 'auth_invalid_header'],
    ['Bearer', 400, 'auth_invalid_header'],
    ['Bearer two words', 400, 'auth_invalid_header'],
  ])('the header %j → %i %s', async (header, status, code) => {
    const response = await ask(header);
    expect([response.status, codeOf(response)]).toEqual([status, code]);
  });

  it('no keys given → any key is accepted', async () => {
    expect((await ask('Bearer whatever')).status).toBe(200);
  });

  it('a key that is not one of the given → 401 auth_invalid_api_key', async () => {
    const response = await ask('Bearer third', { apiKeys: ['first', 'second'] });
    expect([response.status, codeOf(response)]).toEqual([401, 'auth_invalid_api_key']);
  });

  it('each of the given keys → accepted', async () => {
    expect((await ask('Bearer first', { apiKeys: ['first', 'second'] })).status).toBe(200);
    expect((await ask('bearer second', { apiKeys: ['first', 'second'] })).status).toBe(200);
  });

  it('fake.apiKey → the first of the given keys', () => {
    expect(makeFake({ apiKeys: ['first', 'second'] }).fake.apiKey).toBe('first');
  });

  it('a refused key → does not use up the allowance', async () => {
    const { call } = makeFake({ apiKeys: ['right'], limits: {} });
    await call('GET', '/couriers', undefined, { authorization: 'Bearer wrong' });
    expect((await call('GET', '/couriers')).status).toBe(200);
  });
});

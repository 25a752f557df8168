import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { buildAuthenticator } from '../../src/webhooks/auth.ts';
import { WebhookAuthenticationError } from '../../src/webhooks/index.ts';

describe('buildAuthenticator', () => {
  test.each([
    ['the secret', 'Bearer s3cret'],
    ['a lower-case scheme', 'bearer s3cret'],
    ['an upper-case scheme', 'BEARER s3cret'],
    ['more spaces', 'Bearer   s3cret '],
    ['a tab after it', 'Bearer s3cret\t'],
  ])('%s → accepted', (_title, header) => {
    expect(() => buildAuthenticator('s3cret')(header)).not.toThrow();
  });

  test.each([
    ['no header', null],
    ['an empty header', ''],
    ['the bare secret', 's3cret'],
    ['another scheme', 'Basic s3cret'],
    ['a bearer after another scheme', 'Basic bearer s3cret'],
    ['an empty token', 'Bearer '],
    ['a wrong secret of the same length', 'Bearer s3creT'],
    ['a shorter secret', 'Bearer s3cre'],
    ['a longer secret', 'Bearer s3crets'],
    ['two secrets in one header', 'Bearer s3cret, Bearer s3cret'],
    ['no space', 'Bearers3cret'],
    ['a line after the secret', 'Bearer s3cret\nmore'],
  ])('%s → WebhookAuthenticationError', (_title, header) => {
    expect(() => buildAuthenticator('s3cret')(header)).toThrow(WebhookAuthenticationError);
  });

  test.each(['old', 'new', 'newer', 'newest'])(
    'a list of four secrets, and the header holds %s → accepted',
    (secret) => {
      expect(() => buildAuthenticator(['old', 'new', 'newer', 'newest'])(`Bearer ${secret}`)).not.toThrow();
    },
  );

  test.each([
    [null, 'undefined'],
    ['s3cret', 'a string of 6 characters'],
  ])('header %j → the message tells that it got %s', (header, got) => {
    expect(() => buildAuthenticator('s3cret')(header)).toThrow(`to be a bearer token, got ${got}`);
  });

  test('a list of secrets, and the header holds none of them → WebhookAuthenticationError', () => {
    expect(() => buildAuthenticator(['old', 'new'])('Bearer oldnew')).toThrow(WebhookAuthenticationError);
  });

  // The UTF-8 of the last two ends with a byte that reads as a no-break space.
  test.each(['sécret', 'voilà', 'pass😠'])(
    'the secret %s, beyond ASCII, sent as the bytes of its UTF-8 → accepted',
    (secret) => {
      const header = `Bearer ${Buffer.from(secret).toString('latin1')}`;
      expect(() => buildAuthenticator(secret)(header)).not.toThrow();
    },
  );

  test('a wrong secret → the error shows neither it nor the right one', () => {
    let caught: unknown;
    try {
      buildAuthenticator('right-one')('Bearer wrong-one');
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(WebhookAuthenticationError);
    expect(inspect(caught, { depth: 9, showHidden: true }) + JSON.stringify(caught)).not.toMatch(
      /right-one|wrong-one/,
    );
  });

  test.each([
    ['empty', '', 'an empty string'],
    ['spaces', '  ', 'one with white space around it'],
    ['a line break at its end', 's3cret\n', 'one with white space around it'],
    ['a number', 5, 'a number'],
    ['null', null, 'null'],
    ['undefined', undefined, 'undefined'],
    ['an empty list', [], 'none'],
    ['a list with an empty one', ['s3cret', ''], 'an empty string'],
  ])('secret that is or has %s → ConfigurationError that tells so', (_title, secret, got) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    const make = () => buildAuthenticator(secret as string);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(new RegExp(`, got ${got}$`));
  });

  test('false → accepted without a header', () => {
    expect(() => buildAuthenticator(false)(null)).not.toThrow();
  });

  test('a secret with white space around it → the message does not show it', () => {
    expect(() => buildAuthenticator(' s3cret')).toThrow(/^(?!.*s3cret)/);
  });
});

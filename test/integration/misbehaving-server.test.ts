import { describe, expect, test } from 'vitest';
import { catchRejection } from '../support/make-client.ts';
import { breakOff, refusedBaseUrl, reset, respond, startServer } from '../support/scripted-server.ts';
import { wireClient, wireClientFor } from '../support/wire-client.ts';

describe('a call over HTTP', () => {
  test('200 with a body that breaks off → ConnectionError', async () => {
    const { client } = await wireClientFor(breakOff);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message: expect.stringMatching(/^GET http:\/\/127\.0\.0\.1:\d+\/\S* got an incomplete response: /),
      cause: expect.any(Error),
    });
  });

  // The status of a resend is enough: after an error the caller would repeat it, and every event would be pushed twice.
  test('200 to a resend with a body that breaks off → resolves without a total', async () => {
    const { client, server } = await wireClientFor(breakOff);
    expect(await client.trackers.resendWebhookEvents('t')).toEqual({});
    expect(server.requests).toHaveLength(1);
  });

  test('a reset connection → ConnectionError', async () => {
    const { client } = await wireClientFor(reset);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: false,
      message: expect.stringMatching(/ got no response: /),
    });
  });

  test('a refused connection → ConnectionError with neverSent true', async () => {
    const client = wireClient(await refusedBaseUrl());
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConnectionError',
      neverSent: true,
    });
  });

  test.each([301, 302, 303, 307, 308])(
    'a redirect (%d) → an error, and the target gets no request',
    async (status) => {
      const target = await startServer(respond(200, '{}'));
      const { client } = await wireClientFor(respond(status, '', { location: `${target.baseUrl}/stolen` }));
      expect(await catchRejection(client.couriers.list())).toMatchObject({ name: 'ApiError', status });
      expect(target.requests).toHaveLength(0);
    },
  );
});

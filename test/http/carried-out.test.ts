import { describe, expect, test } from 'vitest';
import { resolveCallOptions } from '../../src/config/call-options.ts';
import { resolveConfig } from '../../src/config/config.ts';
import { createCallContext, execute } from '../../src/http/execute.ts';
import { prepareRequest } from '../../src/http/prepare.ts';
import type { RequestOptions, TrackingClientOptions } from '../../src/options.ts';
import {
  API_KEY,
  BASE_URL,
  makeClient,
  networkFailure,
  rejectionOf,
  type Step,
} from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

// A bulk run asks it of each failed chunk: created or not, or unknown.

/** Why a call failed, as the inside of the package learns it. */
async function failureOf(
  script: Step | Step[],
  client: TrackingClientOptions = {},
  call: RequestOptions = {},
) {
  const { fetch } = makeClient(script);
  const config = resolveConfig({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    fetch,
    rateLimit: false,
    logLevel: 'silent',
    ...client,
  });
  const options = resolveCallOptions(config, 'trackers.get', call);
  const request = prepareRequest(config, 'trackers.get', { params: { trackerId: 't' } });
  return await settleInVirtualTime(() => rejectionOf(execute(createCallContext(config), request, options)));
}

describe('a failed call → whether the service may have carried a request of it out', () => {
  const never: Step = () => new Promise<Response>(() => {});
  const refused = networkFailure('ECONNREFUSED');
  const once = { retry: false } as const;

  test.each([
    ['500', { status: 500 }, once, true],
    ['totalTimeoutMs while it is under way', never, { ...once, totalTimeoutMs: 5 }, true],
    ['400', { status: 400 }, once, false],
    ['a key function that fails', {}, { apiKey: () => Promise.reject(new Error('sealed')) }, false],
    ['500, then 400', [{ status: 500 }, { status: 400 }], {}, true],
    ['500, then a refused connection', [{ status: 500 }, refused], { retry: { retries: 1 } }, true],
    ['a refused connection, then 400', [refused, { status: 400 }], {}, false],
  ] as [string, Step | Step[], TrackingClientOptions, boolean][])(
    '%s → as the table says',
    async (_what, script, options, isPerhapsDone) => {
      expect(await failureOf(script, options)).toMatchObject({ mayHaveBeenCarriedOut: isPerhapsDone });
    },
  );

  test.each([
    ['onStart', false],
    ['onRequest', false],
    ['onResponse', true],
  ] as const)('an abort by %s of a success → %j', async (hook, isPerhapsDone) => {
    const controller = new AbortController();
    const hooks = { [hook]: () => controller.abort('enough') };
    const tracker = { trackerId: 't', trackingNumber: 'LA680658838NL', isTracked: true };
    const failure = await failureOf(
      { body: { data: { tracker } } },
      { hooks },
      { signal: controller.signal },
    );
    expect(failure).toMatchObject({ error: 'enough', mayHaveBeenCarriedOut: isPerhapsDone });
  });
});

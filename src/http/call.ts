import type { KyInstance } from 'ky';
import pRetry from 'p-retry';
import { type CallOptions, resolveCallOptions, schemaOfOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import type { RequestOptions } from '../options.ts';
import { ApiPromise, type CallOutcome } from './api-promise.ts';
import { createKy, sendRequest } from './ky.ts';
import { type CallInput, type EndpointResult, type PreparedCall, prepareCall } from './request.ts';
import { type CallResponse, readOutcome, requestIdOf, settlementOf } from './response.ts';
import { isRateLimited } from './retry.ts';
import { CallState, noteFailure, waitForRetry, waitForToken } from './waits.ts';

type AnyOptions = RequestOptions & { readonly retryAmbiguous?: boolean | undefined };

/** What every resource needs of the client: its configuration, and a way to call an endpoint of the table. */
export class Caller {
  readonly config: Config;
  readonly #ky: KyInstance;
  readonly #defaults: CallOptions;

  constructor(config: Config) {
    this.config = config;
    this.#ky = createKy(config);
    this.#defaults = resolveCallOptions(config);
  }

  /** A lazy call of one endpoint; input and options are read now, so later changes to them do no harm. */
  call<Name extends EndpointName>(
    name: Name,
    input: CallInput,
    options: AnyOptions | undefined,
  ): ApiPromise<EndpointResult<Name>> {
    return this.start(() => prepareCall(this.config, name, input), name, options);
  }

  /** A lazy call whose preparation fails only when it is awaited; `method` is the one that was called. */
  start<T>(
    prepare: () => PreparedCall<T>,
    method: EndpointName | 'request',
    options: AnyOptions | undefined,
  ): ApiPromise<T> {
    try {
      const callOptions =
        options === undefined
          ? this.#defaults
          : resolveCallOptions(this.config, options, schemaOfOptions(method));
      const call = prepare();
      return new ApiPromise(() => this.#run(call, callOptions));
    } catch (error) {
      return new ApiPromise(() => Promise.reject(error));
    }
  }

  /** Runs one call: token, attempt, parse, classify, retry, unwrap, validate. */
  #run<T>(call: PreparedCall<T>, options: CallOptions): Promise<CallOutcome<T>> {
    const { config } = this;
    const state = new CallState(config, call, options);
    const { retries, maxRateLimitRetries } = options.retry;
    const attempt = async (number: number) => {
      state.attempt = number;
      return readOutcome(config, await this.#attempt(state));
    };
    return pRetry(attempt, {
      // The most there can be; the decision keeps each cap apart, by p-retry's own counts.
      retries: retries + maxRateLimitRetries,
      signal: options.signal,
      onFailedAttempt: ({ error }) => noteFailure(state, error),
      shouldConsumeRetry: ({ error }) => !isRateLimited(error),
      shouldRetry: (counts) => waitForRetry(state, counts),
      // Its own wait can't be used: hooks learn the length beforehand, and `Retry-After` and `totalTimeoutMs` bound it.
      minTimeout: 0,
    });
  }

  /** One attempt: waits for its token, sends it, and reads the response whole. */
  async #attempt<T>(state: CallState<T>): Promise<CallResponse<T>> {
    const { config, call, options } = state;
    const ticket = await waitForToken(state);
    const send = async (signal: AbortSignal) => {
      state.phase = 'headers';
      const key = typeof config.apiKey === 'string' ? config.apiKey : await config.apiKey();
      signal.throwIfAborted();
      const info = { ...state.info, tokensLeft: ticket?.tokensLeft };
      let sentAt = 0;
      const response = await sendRequest(this.#ky, config, {
        call,
        attempts: state.attempt,
        key,
        headers: options.headers,
        signal,
        onSend: () => {
          config.hooks.onRequest?.(info);
          signal.throwIfAborted();
          sentAt = performance.now();
          ticket?.send();
        },
        onHeaders: (arrived) => {
          state.answeredAt = performance.now();
          ticket?.settle(settlementOf(arrived));
          // An attempt that is over must not speak for the next.
          if (!signal.aborted) state.phase = 'body';
        },
      });
      const durationMs = performance.now() - sentAt;
      const { status } = response;
      config.hooks.onResponse?.({ ...info, status, durationMs, requestId: requestIdOf(response) });
      if (config.isDebugLogged) {
        const fields = { attempt: state.attempt, durationMs, requestId: requestIdOf(response) };
        config.logger.debug(`${call.method} ${call.path} → ${status}`, fields);
      }
      return response;
    };
    try {
      return await state.inTime(send, options.timeoutMs ?? config.timeoutMs[call.timeoutClass]);
    } catch (error) {
      ticket?.cancel();
      throw error;
    }
  }
}

import type { KyInstance } from 'ky';
import pRetry from 'p-retry';
import { systemClock } from '../common/clock.ts';
import { type CallOptions, resolveCallOptions, schemaOfOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import type { RequestOptions } from '../options.ts';
import { ApiPromise, type CallOutcome } from './api-promise.ts';
import { createKy, sendRequest } from './ky.ts';
import { type CallInput, type EndpointResult, type PreparedCall, prepareCall } from './request.ts';
import { type CallResponse, readOutcome, readRateLimitFeedback, requestIdOf } from './response.ts';
import { isRateLimited } from './retry.ts';
import { CallState, waitForRetry, waitForToken } from './waits.ts';

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

  /** Calls one endpoint; input and options are read now, so later changes to them do no harm. */
  call<Name extends EndpointName>(
    name: Name,
    input: CallInput,
    options: AnyOptions | undefined,
  ): ApiPromise<EndpointResult<Name>> {
    return this.start(() => prepareCall(this.config, name, input), name, options);
  }

  /** Starts a call; what its preparation throws is its rejection. `method` is the one that was called. */
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
      return new ApiPromise(this.#run(call, callOptions));
    } catch (error) {
      return new ApiPromise(Promise.reject(error));
    }
  }

  /** Runs one call: token, attempt, parse, classify, retry, unwrap, validate. */
  #run<T>(call: PreparedCall<T>, options: CallOptions): Promise<CallOutcome<T>> {
    const { config } = this;
    const state = new CallState(config, call, options);
    const { retries, maxRateLimitRetries } = options.retry;
    const attempt = async (number: number) => {
      state.attempt = number;
      return readOutcome(config, await this.#attempt(state), state);
    };
    config.hooks.onStart?.(state.callInfo);
    const outcome = pRetry(attempt, {
      // The most there can be; the decision keeps each cap apart, by p-retry's own counts.
      retries: retries + maxRateLimitRetries,
      signal: options.signal,
      onFailedAttempt: (failure) => waitForRetry(state, failure),
      shouldConsumeRetry: ({ error }) => !isRateLimited(error),
      // Its own wait can't be used: hooks learn the length beforehand, and `Retry-After` and `totalTimeoutMs` bound it.
      minTimeout: 0,
    });
    const { onDone } = config.hooks;
    return onDone === undefined ? outcome : reportEnd(outcome, (error) => onDone(state.done(error)));
  }

  /** One attempt: waits for its token, sends it, and reads the response whole. */
  async #attempt<T>(state: CallState<T>): Promise<CallResponse<T>> {
    const { config, call, options } = state;
    const { hooks } = config;
    const permit = await waitForToken(state);
    const info = () => ({ ...state.info, tokensLeft: permit?.tokensLeft });
    /** Open from its hook `onRequest` to the hook that tells its end. */
    const request = { isOpen: false, sentAt: 0 };
    const send = async (signal: AbortSignal) => {
      state.phase = 'headers';
      const key = typeof config.apiKey === 'string' ? config.apiKey : await config.apiKey();
      const response = await sendRequest(this.#ky, config, {
        call,
        attempts: state.attempt,
        key,
        headers: options.headers,
        signal,
        onSend: () => {
          signal.throwIfAborted();
          request.isOpen = true;
          request.sentAt = systemClock.now();
          hooks.onRequest?.(info());
          // By the hook.
          signal.throwIfAborted();
          state.sent += 1;
          permit?.send();
        },
        onHeaders: (arrived) => {
          state.answeredAt = systemClock.now();
          permit?.report(readRateLimitFeedback(arrived));
          // An attempt that is over must not speak for the next.
          if (!signal.aborted) state.phase = 'body';
        },
      });
      request.isOpen = false;
      const durationMs = systemClock.now() - request.sentAt;
      const { status } = response;
      const requestId = requestIdOf(response);
      hooks.onResponse?.({ ...info(), status, durationMs, requestId });
      if (config.isDebugLogged) {
        const { callId } = state.callInfo;
        const fields = { callId, attempt: state.attempt, durationMs, requestId };
        config.logger.debug(`${call.method} ${call.path} → ${status}`, fields);
      }
      return response;
    };
    try {
      return await state.inTime(send, options.timeoutMs ?? config.timeoutMs[call.timeoutClass]);
    } catch (error) {
      permit?.cancel();
      if (request.isOpen)
        hooks.onError?.({ ...info(), error, durationMs: systemClock.now() - request.sentAt });
      throw error;
    }
  }
}

/** Tells how a call ended, before anybody else learns of it. */
async function reportEnd<T>(outcome: Promise<T>, report: (error: unknown) => void): Promise<T> {
  try {
    const result = await outcome;
    report(undefined);
    return result;
  } catch (error) {
    report(error);
    throw error;
  }
}

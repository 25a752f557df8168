import { checkBoolean, checkKnownOptions } from '../common/option-checks.ts';
import { METHOD_OPTIONS, resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { EndpointName } from '../endpoints.ts';
import type { RequestOptions } from '../options.ts';
import { ApiPromise } from './api-promise.ts';
import { type PreparedCall, runCall } from './pipeline.ts';
import { type CallInput, type EndpointResult, prepareCall } from './prepare.ts';

/** What every resource needs of the client: its configuration, and a way to call an endpoint of the table. */
export class Caller {
  readonly config: Config;

  constructor(config: Config) {
    this.config = config;
  }

  /** A lazy call of one endpoint; input and options are read now, so later changes to them do no harm. */
  call<Name extends EndpointName>(
    name: Name,
    input: CallInput,
    options: (RequestOptions & { readonly retryAmbiguous?: boolean | undefined }) | undefined,
  ): ApiPromise<EndpointResult<Name>> {
    const { retryAmbiguous = false } = options ?? {};
    const prepare = () =>
      prepareCall(this.config, name, input, checkBoolean('retryAmbiguous', retryAmbiguous));
    return this.start(prepare, options, METHOD_OPTIONS.get(name) ?? []);
  }

  /**
   * A lazy call whose preparation fails only when it is awaited.
   *
   * @param known - the names that its options may have, so that a typo does not pass silently
   */
  start<T>(
    prepare: () => PreparedCall<T>,
    options: RequestOptions | undefined,
    known: readonly string[],
  ): ApiPromise<T> {
    try {
      if (options !== undefined) checkKnownOptions('options', options, known);
      const callOptions = resolveCallOptions(this.config, options);
      const prepared = prepare();
      return new ApiPromise(() => runCall(this.config, prepared, callOptions));
    } catch (error) {
      return new ApiPromise(() => Promise.reject(error));
    }
  }
}

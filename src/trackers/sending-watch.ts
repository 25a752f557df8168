import { ApiError } from '../api-errors.ts';
import { ConnectionError } from '../errors.ts';
import { Caller } from '../http/caller.ts';
import type { Hooks } from '../logging.ts';

/** True when the service surely did not carry the request out. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 300 && error.status < 500 && error.status !== 408;
  return error instanceof ConnectionError && error.neverSent;
}

/** Watches the attempts of one call, to tell afterwards what may have happened at the service. */
export class SendingWatch {
  #isAnswerDue = false;
  #wasSent = false;
  #wasAmbiguous = false;

  /** True once a request has left. */
  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** A caller that reports its attempts to this watch too. */
  watch({ config }: Caller): Caller {
    const { onRequest, onRetry } = config.hooks;
    const hooks: Hooks = {
      ...config.hooks,
      onRequest: (info) => {
        this.#wasSent = true;
        this.#isAnswerDue = true;
        return onRequest?.(info);
      },
      onRetry: (info) => {
        this.#judge(info.error);
        return onRetry?.(info);
      },
    };
    return new Caller({ ...config, hooks });
  }

  /**
   * Whether any attempt may have been carried out.
   *
   * @param error - what the call rejected with
   */
  mayBeDone(error: unknown): boolean {
    // A call that ended while it waited for its next attempt was judged by its last one.
    if (this.#isAnswerDue) this.#judge(error);
    return this.#wasAmbiguous;
  }

  #judge(error: unknown): void {
    this.#isAnswerDue = false;
    if (!isRefusal(error)) this.#wasAmbiguous = true;
  }
}

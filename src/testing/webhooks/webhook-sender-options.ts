import {
  checkCount,
  checkDelayMs,
  checkKnownOptions,
  checkOneOf,
  refuseOption,
} from '../../common/option-checks.ts';
import { kindOf } from '../../common/validation.ts';
import { ConfigurationError } from '../../errors.ts';
import { checkFunction } from '../../webhooks/function-check.ts';
import { checkBoolean, checkSeed } from '../checks.ts';
import type { FakeTrackingService } from '../fake-tracking-service.ts';
import { seededRandom } from '../service/seeded.ts';
import type { WebhookPush } from './webhook-queue.ts';
import type { WebhookTarget } from './webhook-request.ts';
import type { SentWebhook } from './webhook-sender.ts';

/** The service gives up after as many attempts (public contract). */
const MAX_ATTEMPTS = 20;
/** The service waits about as long for an answer (public contract). */
const TIMEOUT_MS = 15_000;

/** Options of `createWebhookSender`. */
export interface WebhookSenderOptions {
  /** Where to push: a URL, or a handler such as `createWebhookHandler` makes. */
  readonly target: WebhookTarget;
  /** The fake whose queue is emptied. */
  readonly fake: Pick<FakeTrackingService, 'webhooks'>;
  /** Sent as `Authorization: Bearer <secret>`. Default: none. */
  readonly secret?: string;
  /** How many times more than once each request is sent. Default 0. */
  readonly duplicates?: number;
  /** True to send in an order that only the seed decides. Default false: in order. */
  readonly shuffle?: boolean;
  /** Decides the order of `shuffle`. Default 1. */
  readonly seed?: string | number;
  /** Requests under way at the same time. Default 1. */
  readonly concurrency?: number;
  /** True to repeat what was not accepted, up to 20 attempts; or how often and after how many milliseconds (default 100). Default false. */
  readonly until2xx?: boolean | { readonly maxAttempts?: number; readonly delayMs?: number };
  /** Items of `trackings[]` in a request. Default 1. */
  readonly itemsPerRequest?: number;
  /**
   * `flat` sends `{ trackerId, clientTrackerId, events }` (service.md 6), one item a request, and a proof of delivery, which that
   * shape does not have, enveloped. Default `enveloped`.
   */
  readonly shape?: 'enveloped' | 'flat';
  /** Milliseconds until an unanswered request counts as failed. Default 15000. */
  readonly timeoutMs?: number;
  /** Told of each request when it is answered, and of what it held. */
  readonly onSent?: (sent: SentWebhook, pushes: readonly WebhookPush[]) => void;
}

const OPTION_NAMES = [
  'target',
  'fake',
  'secret',
  'duplicates',
  'shuffle',
  'seed',
  'concurrency',
  'until2xx',
  'itemsPerRequest',
  'shape',
  'timeoutMs',
  'onSent',
] as const satisfies readonly (keyof WebhookSenderOptions)[];

function resolveRepeats(until2xx: NonNullable<WebhookSenderOptions['until2xx']>) {
  if (until2xx === false) return { maxAttempts: 1, delayMs: 0 };
  if (until2xx !== true) checkKnownOptions('until2xx', until2xx, ['maxAttempts', 'delayMs']);
  const { maxAttempts = MAX_ATTEMPTS, delayMs = 100 } = until2xx === true ? {} : until2xx;
  return {
    maxAttempts: checkCount('until2xx.maxAttempts', maxAttempts, 1),
    delayMs: checkDelayMs('until2xx.delayMs', delayMs),
  };
}

/** Checks the options and fills the defaults in; throws `ConfigurationError`. */
export function resolveSenderOptions(options: WebhookSenderOptions) {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { target, fake, secret, onSent } = options;
  const isTarget = typeof target === 'function' || URL.canParse(target);
  if (!isTarget)
    throw new ConfigurationError(`Expected \`target\` to be a URL or a function, got ${kindOf(target)}`);
  if (typeof fake?.webhooks?.take !== 'function') refuseOption('fake', 'a fake tracking service', fake);
  if (secret !== undefined && (typeof secret !== 'string' || secret === '')) {
    refuseOption('secret', 'a non-empty string', secret);
  }
  checkFunction('onSent', onSent);
  const seed = checkSeed(options.seed ?? 1);
  const shape = checkOneOf('shape', options.shape ?? 'enveloped', ['enveloped', 'flat']);
  return {
    target,
    secret,
    fake,
    duplicates: checkCount('duplicates', options.duplicates ?? 0, 0),
    random: checkBoolean('shuffle', options.shuffle ?? false) ? seededRandom(seed) : undefined,
    concurrency: checkCount('concurrency', options.concurrency ?? 1, 1),
    itemsPerRequest: shape === 'flat' ? 1 : checkCount('itemsPerRequest', options.itemsPerRequest ?? 1, 1),
    isFlat: shape === 'flat',
    timeoutMs: checkDelayMs('timeoutMs', options.timeoutMs ?? TIMEOUT_MS),
    onSent: onSent ?? (() => {}),
    ...resolveRepeats(options.until2xx ?? false),
  };
}

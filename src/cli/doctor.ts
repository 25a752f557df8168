import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import {
  ApiError,
  type ApiPromise,
  AuthenticationError,
  isTrackingError,
  NoActiveSubscriptionError,
  PermissionDeniedError,
  QuotaExceededError,
  RateLimitError,
  ResponseValidationError,
  type TrackingClient,
  type TrackingError,
  type WithResponse,
} from 'tracking-client';
import { buildWebhookMessage } from 'tracking-client/testing';
import { linkedController } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
import { listCauses } from '../common/foreign.ts';
import { withTimeLimit } from '../common/time-limit.ts';
import { isUnencrypted } from '../common/urls.ts';
import { saysFailure, WEBHOOK_TIMEOUT_MS } from '../common/webhook-rules.ts';
import {
  addHelpLines,
  addServiceFlags,
  createClient,
  isInsecureHttpAllowed,
  parseWebhookUrl,
  SECRET_HELP,
  type ServiceFlags,
  secretOption,
} from './flags.ts';
import { wrap } from './layout.ts';
import { CommandError, EXIT, plain, type Terminal } from './terminal.ts';

interface DoctorFlags extends ServiceFlags {
  readonly webhookUrl?: string;
  readonly secret?: string;
}

interface Line {
  readonly status: 'ok' | 'warning' | 'failed';
  readonly check: string;
  readonly message: string;
}

const ok = (check: string, message: string): Line => ({ check, status: 'ok', message });
const warning = (check: string, message: string): Line => ({ check, status: 'warning', message });
const failed = (check: string, message: string): Line => ({ check, status: 'failed', message });

const STATUS_WIDTH = 'warning'.length;
const CHECK_WIDTH = 'certificates'.length;
const SLOW_MS = 5_000;
/** A smaller difference can come from the network, and the header `Date` has whole seconds only. */
const MAX_CLOCK_ERROR_MS = 5_000;

/** docs/command.md names this tracker, so that receivers can ignore it. */
const TEST_TRACKER = {
  trackerId: 'd0c70000-0000-4000-8000-000000000000',
  trackingNumber: 'TRACKING-CLIENT-DOCTOR',
};
/** Tells what a failed webhook costs (docs/service.md 8.5). */
const COST =
  'The service sends a failed webhook again: first after about 12 minutes, with up to 20 attempts in about six days';

export function addDoctor(program: Command, terminal: Terminal): void {
  const { green, yellow, red } = terminal.colours;
  const paint = { ok: green, warning: yellow, failed: red };
  const command = program
    .command('doctor')
    .summary('Check whether this machine can work with your account')
    .description(
      'Check whether this machine can work with your account. This only reads, apart from the test webhooks ' +
        'to --webhook-url.',
    )
    .option('--webhook-url <url>', 'URL of your receiver, to send three test webhooks to', parseWebhookUrl)
    .addOption(secretOption('--secret <secret>', `secret of the webhooks; ${SECRET_HELP}`));
  addHelpLines(
    command,
    terminal,
    'Each line is ok, warning or failed. If a line is failed, the exit code is 1.',
  );
  addServiceFlags(command).action(async (flags: DoctorFlags) => {
    for await (const line of diagnose(flags, terminal)) {
      const { check, status, message } = line;
      if (status === 'failed') terminal.exitCode = EXIT.failed;
      const start = `${paint[status](status.padEnd(STATUS_WIDTH))}  ${check.padEnd(CHECK_WIDTH)}  `;
      if (flags.json) terminal.printJson(line);
      else terminal.print(wrap(start, message, terminal.width));
    }
  });
}

async function* diagnose(flags: DoctorFlags, terminal: Terminal): AsyncGenerator<Line, void, undefined> {
  const { signal } = terminal;
  const client = createQuietClient(flags, terminal);
  if ('message' in client) yield client;
  else {
    let isReached = true;
    for await (const line of checkAccount(client, flags, signal)) {
      isReached &&= line.check !== 'service' || line.status !== 'failed';
      yield line;
    }
    const isPlain = flags.baseUrl?.trim().startsWith('http:') ?? false;
    yield checkProxy(isPlain ? 'HTTP_PROXY' : 'HTTPS_PROXY', isReached);
    if (!isPlain) yield await checkCertificates();
  }
  if (flags.webhookUrl !== undefined) yield* checkReceiver(flags.webhookUrl, flags, signal);
}

/** Creates a client that sends each request once, and logs nothing, because the lines say everything. */
function createQuietClient(flags: ServiceFlags, terminal: Terminal): TrackingClient | Line {
  try {
    const options = { retry: false, timeoutMs: WEBHOOK_TIMEOUT_MS, logLevel: 'silent' } as const;
    return createClient(flags, terminal).withOptions(options);
  } catch (error) {
    if (error instanceof CommandError) return failed('settings', error.message);
    throw error;
  }
}

async function* checkAccount(
  client: TrackingClient,
  { baseUrl = '' }: ServiceFlags,
  signal: AbortSignal,
): AsyncGenerator<Line, void, undefined> {
  const expected = client.rateLimits();
  const sentAtMs = Date.now();
  const listed = await settle(client.trackers.list({ page: 1, limit: 1 }, { signal }));
  const receivedAtMs = Date.now();
  const { error } = listed;
  const subject = error && findSubject(error);
  if (error && subject === 'service') {
    yield failed('service', describe(error));
    return;
  }
  const responded = `${plain(baseUrl)} responded after ${receivedAtMs - sentAtMs} ms`;
  yield isUnencrypted(baseUrl)
    ? warning('service', `${responded}, but others on the network can read the key; use https://`)
    : ok('service', responded);
  if (subject === undefined || subject === 'plan') yield ok('key', 'The service accepts the key');
  if (listed.value) {
    const trackers = listed.value.data.trackers.length > 0 ? 'has trackers' : 'has no trackers yet';
    yield ok(
      'plan',
      `The plan includes trackers, and the account ${trackers}. Only the dashboard shows the rest of the quota`,
    );
  }
  if (error && subject) yield failed(subject, describe(error));
  if (subject !== 'key') {
    const couriers = await settle(client.couriers.list({ signal }));
    if (couriers.error) yield failed('couriers', describe(couriers.error));
    else yield judgeCouriers(couriers.value.data.length);
    if (subject !== 'limits')
      yield judgeLimits([
        ['trackers.list', listed.value?.rateLimit.limit, expected['trackers.list'].limit],
        ['couriers.list', couriers.value?.rateLimit.limit, expected['couriers.list'].limit],
      ]);
  }
  const headers = error instanceof ApiError ? error.headers : listed.value?.response.headers;
  yield judgeClock(headers?.get('date'), sentAtMs, receivedAtMs);
}

type Settled<T> =
  | { readonly value: WithResponse<T>; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: TrackingError };

async function settle<T>(call: ApiPromise<T>): Promise<Settled<T>> {
  try {
    return { value: await call.withResponse() };
  } catch (error) {
    if (isTrackingError(error)) return { error };
    throw error;
  }
}

/** Finds what an error is about. A web page, or a 403 without a code, comes from another server than the service. */
function findSubject(error: TrackingError): 'service' | 'key' | 'plan' | 'limits' {
  if (!(error instanceof ApiError) || isWebPage(error)) return 'service';
  if (error instanceof NoActiveSubscriptionError || error instanceof QuotaExceededError) return 'plan';
  if (error.status === 402) return 'plan';
  if (error instanceof RateLimitError) return 'limits';
  if (error instanceof AuthenticationError) return 'key';
  return error instanceof PermissionDeniedError && error.code !== undefined ? 'key' : 'service';
}

function isWebPage(error: TrackingError): boolean {
  const hasBody = error instanceof ApiError || error instanceof ResponseValidationError;
  return hasBody && typeof error.body === 'string' && /^\s*</.test(error.body);
}

function describe(error: TrackingError): string {
  const hint = isWebPage(error) ? '. This web page comes from a proxy, a login or another server' : '';
  return plain(error.message) + hint;
}

function judgeCouriers(count: number): Line {
  return count > 0
    ? ok('couriers', `The list has ${count} couriers`)
    : warning('couriers', 'The list of couriers is empty');
}

type Limit = readonly [endpoint: string, announced: number | undefined, expected: number];

function judgeLimits(limits: readonly Limit[]): Line {
  const known = limits.flatMap(([endpoint, announced, expected]) =>
    announced === undefined ? [] : [{ endpoint, announced, expected }],
  );
  if (known.length === 0)
    return ok('limits', 'The service announces no limits, so a client keeps to those that it documents');
  const lower = known.filter(({ announced, expected }) => announced < expected);
  if (lower.length === 0)
    return ok(
      'limits',
      `Requests per second: ${known.map((limit) => `${limit.announced} for ${limit.endpoint}`).join(', ')}`,
    );
  const difference = lower.map(
    (limit) => `${limit.announced} instead of ${limit.expected} for ${limit.endpoint}`,
  );
  const message =
    `The service announces fewer requests per second than documented: ${difference.join(', ')}. A client ` +
    'keeps to these limits after its first response; to keep to them from the start, set `rateLimit.limits`';
  return warning('limits', message);
}

function judgeClock(date: string | null | undefined, sentAtMs: number, receivedAtMs: number): Line {
  const serviceMs = Date.parse(date ?? '');
  if (Number.isNaN(serviceMs))
    return warning('clock', 'The response has no valid header `Date` to compare this clock with');
  // The service wrote `Date` between sending and receiving, and cut it to the second.
  const aheadMs = sentAtMs - (serviceMs + 999);
  const behindMs = serviceMs - receivedAtMs;
  if (Math.max(aheadMs, behindMs) < MAX_CLOCK_ERROR_MS)
    return ok(
      'clock',
      `This clock and that of the service differ by less than ${MAX_CLOCK_ERROR_MS / 1000} s`,
    );
  const distance = aheadMs > 0 ? `${formatSpan(aheadMs)} ahead of` : `${formatSpan(behindMs)} behind`;
  return warning(
    'clock',
    `This clock is ${distance} the service. Synchronize it: certificates and the age of a shipping date depend on it`,
  );
}

function formatSpan(durationMs: number): string {
  if (durationMs < 120_000) return `${Math.round(durationMs / 1000)} s`;
  return durationMs < 7_200_000
    ? `${Math.round(durationMs / 60_000)} min`
    : `${Math.round(durationMs / 3_600_000)} h`;
}

/** @param name - the variable with the proxy for the scheme of the base URL; its value may contain a password */
function checkProxy(name: string, isReached: boolean): Line {
  const isSet = [name, name.toLowerCase()].some((variable) => process.env[variable]);
  if (!isSet) return ok('proxy', `${name} is not set, so calls use no proxy`);
  const message = isProxyUsed()
    ? `${name} is used, unless NO_PROXY names the host. An error without a code may come from the proxy`
    : `${name} is set, but Node ignores it. To use it, set NODE_USE_ENV_PROXY=1 (Node 24 or later)`;
  return isReached ? ok('proxy', message) : warning('proxy', message);
}

/** Node 22.21 and Node 24 use the proxy of the environment if they are told to; older versions never do. */
function isProxyUsed(): boolean {
  const { NODE_USE_ENV_PROXY, NODE_OPTIONS = '' } = process.env;
  const flag = '--use-env-proxy';
  const isKnown =
    process.allowedNodeEnvironmentFlags.has(flag) || Number.parseInt(process.versions.node, 10) >= 24;
  const flags = [...process.execArgv, ...NODE_OPTIONS.split(' ')];
  return isKnown && (NODE_USE_ENV_PROXY === '1' || flags.includes(flag));
}

async function checkCertificates(): Promise<Line> {
  const { NODE_EXTRA_CA_CERTS: path, NODE_TLS_REJECT_UNAUTHORIZED } = process.env;
  if (NODE_TLS_REJECT_UNAUTHORIZED === '0')
    return warning(
      'certificates',
      'NODE_TLS_REJECT_UNAUTHORIZED=0 accepts every certificate, so a stranger can read the key. Trust the right one with NODE_EXTRA_CA_CERTS instead',
    );
  if (!path)
    return ok(
      'certificates',
      'Node refuses certificates of authorities that it does not know; NODE_EXTRA_CA_CERTS adds authorities',
    );
  const text = await readFile(path, 'latin1').catch(() => '');
  return /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/.test(text)
    ? ok('certificates', 'Node also trusts the authorities in NODE_EXTRA_CA_CERTS')
    : warning(
        'certificates',
        'NODE_EXTRA_CA_CERTS is not the path of a readable PEM file, so Node ignores it',
      );
}

/** The response of the receiver, or the reason why there is none. */
type Answer =
  | { readonly status: number; readonly hasSuccessFalse: boolean; readonly durationMs: number }
  | { readonly status?: undefined; readonly reason: string };

async function* checkReceiver(
  url: string,
  flags: DoctorFlags,
  signal: AbortSignal,
): AsyncGenerator<Line, void, undefined> {
  const { secret } = flags;
  if (isUnencrypted(url) && !isInsecureHttpAllowed(flags)) {
    const advice = 'use https://, or set `--allow-insecure-http`';
    yield failed('webhook', `The URL begins with http://, so others could read the secret; ${advice}`);
    return;
  }
  const body = buildTestWebhook();
  const answer = await postWebhook(url, secret, body, signal);
  yield judgeRightWebhook(answer, secret !== undefined);
  if (answer.status === undefined) return;
  yield judgeWrongSecret(await postWebhook(url, `wrong-${randomUUID()}`, body, signal));
  yield isRefusal(answer)
    ? warning('broken body', 'Not checked, because the receiver refuses the secret')
    : judgeBrokenBody(await postWebhook(url, secret, '{"trackings":[', signal));
}

/** Builds a webhook with new ids, so that a receiver that skips duplicates handles it. */
function buildTestWebhook(): string {
  const { kind: _kind, ...item } = buildWebhookMessage({ tracker: TEST_TRACKER }, { seed: randomUUID() });
  return JSON.stringify({ trackings: [item] });
}

async function postWebhook(
  url: string,
  secret: string | undefined,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  const { controller, unsubscribe } = linkedController(signal);
  const startedAt = systemClock.now();
  const send = async () => {
    const authorization = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization },
      body,
      redirect: 'manual',
      signal: controller.signal,
    });
    const content: unknown = await new Response(await response.text()).json().catch(() => undefined);
    return {
      status: response.status,
      hasSuccessFalse: saysFailure(content),
      durationMs: Math.round(systemClock.now() - startedAt),
    };
  };
  try {
    return await withTimeLimit(send, WEBHOOK_TIMEOUT_MS, () => {
      controller.abort();
      return new Error(`nothing came within ${WEBHOOK_TIMEOUT_MS / 1000} s, and the service waits no longer`);
    });
  } catch (error) {
    signal.throwIfAborted();
    const cause = listCauses(error).at(-1);
    return { reason: plain(cause?.message || cause?.code || 'unknown failure') };
  } finally {
    unsubscribe();
  }
}

function describeAnswer(answer: Answer): string {
  if (answer.status === undefined) return `The receiver gave no response: ${answer.reason}`;
  const isRedirect = answer.status >= 300 && answer.status <= 399;
  return `The receiver responded with ${answer.status}${isRedirect ? ', a redirect,' : ''}`;
}

function isRefusal({ status }: Answer): boolean {
  return status === 401 || status === 403;
}

function isSuccess({ status = 0 }: Answer): boolean {
  return status >= 200 && status <= 299;
}

function judgeRightWebhook(answer: Answer, hasSecret: boolean): Line {
  const got = describeAnswer(answer);
  const fail = (message: string) => failed('webhook', `${got}${message}. ${COST}`);
  if (answer.status === undefined) return fail('');
  if (isRefusal(answer))
    return fail(
      hasSecret
        ? ', so its secret is not that of TRACKING_WEBHOOK_SECRET or --secret'
        : ', so it has a secret; set TRACKING_WEBHOOK_SECRET to the same secret',
    );
  if (!isSuccess(answer))
    return fail(
      ' instead of a 2xx. Respond with 2xx also for unknown trackers, which the test button of the dashboard sends, too',
    );
  if (answer.hasSuccessFalse)
    return fail(', but its body has success: false, which the service counts as a failure');
  const message = `${got} after ${answer.durationMs} ms`;
  if (answer.durationMs >= SLOW_MS)
    return warning(
      'webhook',
      `${message}; after ${WEBHOOK_TIMEOUT_MS / 1000} s, the webhook has failed. ${COST}`,
    );
  return hasSecret
    ? ok('webhook', message)
    : warning('webhook', `${message}. No secret was sent; set TRACKING_WEBHOOK_SECRET`);
}

function judgeWrongSecret(answer: Answer): Line {
  const got = describeAnswer(answer);
  if (isRefusal(answer)) return ok('wrong secret', got);
  const cost = isSuccess(answer)
    ? 'so whoever knows the URL can send events to you'
    : 'so your alerts cannot tell a wrong secret from a fault of the receiver';
  return failed('wrong secret', `${got} instead of 401 or 403, ${cost}`);
}

function judgeBrokenBody(answer: Answer): Line {
  const got = describeAnswer(answer);
  return (answer.status ?? 500) < 500
    ? ok('broken body', got)
    : failed('broken body', `${got} instead of 400, so a broken body looks like an outage. ${COST}`);
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test, vi } from 'vitest';
import { sleep } from '../../../src/common/clock.ts';
import { NotFoundError, TimeoutError } from '../../../src/errors.ts';
import type { AttemptInfo, Hooks } from '../../../src/observability/hooks.ts';
import type { RequestOptions, TrackingClientOptions } from '../../../src/options.ts';
import { TRACKER } from '../../contract/support/samples.ts';
import { BASE_URL, makeClient, networkFailure, type Step } from '../../support/make-client.ts';
import { settled } from '../../support/settled.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const GOT = { body: { data: { tracker: TRACKER } } };
const SILENCE = () => new Promise<Response>(() => {});

/** A wrapper as a user without types may write it. */
type LooseWrapper = (info: AttemptInfo, send: () => Promise<unknown>) => unknown;

interface Setup {
  readonly script?: Step | Step[];
  /** The wrappers, outermost first. */
  readonly wrappers: readonly LooseWrapper[];
  readonly hooks?: Hooks;
  readonly options?: TrackingClientOptions;
  readonly call?: RequestOptions;
}

/** Makes one call in virtual time and returns its outcome. */
async function get({ script = GOT, wrappers, hooks = {}, options, call }: Setup) {
  const warn = vi.fn();
  const logger = { debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() };
  // Sound for a test of what callers without types pass.
  const list = wrappers.map((aroundAttempt) => ({ aroundAttempt }) as Hooks);
  const { client, requests } = makeClient(script, {
    logger,
    logLevel: 'warn',
    retry: false,
    hooks: [...list, hooks],
    ...options,
  });
  const outcome = await settleInVirtualTime(() =>
    client.trackers.get('t', call).catch((error: unknown) => error),
  );
  // The wrapper goes on after the call has settled.
  await settled();
  const warnings = warn.mock.calls.map(([line]) => String(line).replace('[tracking-client] ', ''));
  return { outcome, sent: requests.length, warnings };
}

const WARNS = 'Your callback `aroundAttempt`';
const SUCCESS = { outcome: TRACKER, sent: 1, warnings: [] };

describe('a wrapper that follows the rules', () => {
  test('a failure and a retry → called once an attempt, with the facts of the attempt', async () => {
    const infos: AttemptInfo[] = [];
    const wrapper: LooseWrapper = (info, send) => {
      infos.push(info);
      return send();
    };
    const script = [networkFailure('ECONNRESET'), GOT];
    const { outcome, warnings } = await get({ script, wrappers: [wrapper], options: { retry: {} } });
    expect(outcome).toEqual(TRACKER);
    const info = {
      callId: expect.any(String),
      endpoint: 'trackers.get',
      method: 'GET',
      path: '/trackers/{trackerId}',
      baseUrl: BASE_URL,
      queuedMs: 0,
    };
    expect(infos).toEqual([
      { ...info, attempt: 1 },
      { ...info, attempt: 2 },
    ]);
    expect(warnings).toEqual([expect.stringContaining('the client retries')]);
  });

  test('a wrapper with an AsyncLocalStorage → fetch and onRequest run inside of it', async () => {
    const storage = new AsyncLocalStorage<number>();
    const seen: unknown[] = [];
    const script = () => {
      seen.push(storage.getStore());
      return Response.json(GOT.body);
    };
    const hooks = { onRequest: () => void seen.push(storage.getStore()) };
    await get({ script, hooks, wrappers: [({ attempt }, send) => storage.run(attempt, send)] });
    expect(seen).toEqual([1, 1]);
  });

  test.each(['a stream', 'a stub with `text`'])(
    'a body that is %s → read inside of the wrapper, and so are onResponse and onMismatch called',
    async (kind) => {
      const storage = new AsyncLocalStorage<string>();
      const seen: unknown[] = [];
      const note = (what: string) => void seen.push([what, storage.getStore()]);
      const text = JSON.stringify({ data: { tracker: { ...TRACKER, isTracked: 'yes' } } });
      const pull = (stream: ReadableStreamDefaultController) => {
        note('body');
        stream.enqueue(Buffer.from(text));
        stream.close();
      };
      const stream = new ReadableStream({ pull }, { highWaterMark: 0 });
      const read = async () => {
        note('body');
        return text;
      };
      // A stub without types may lack a stream.
      const stub = { status: 200, statusText: '', ok: true, headers: new Headers(), body: null, text: read };
      const response = kind === 'a stream' ? new Response(stream) : (stub as unknown as Response);
      const wrapper: LooseWrapper = (_info, send) => storage.run('in', send);
      const { outcome } = await get({
        script: () => response,
        wrappers: [wrapper],
        hooks: { onResponse: () => note('onResponse'), onMismatch: () => note('onMismatch') },
      });
      expect(outcome).toMatchObject({ trackerId: TRACKER.trackerId });
      expect(seen).toEqual([
        ['body', 'in'],
        ['onResponse', 'in'],
        ['onMismatch', 'in'],
      ]);
    },
  );

  test('a body that is still being read → the promise of `send` waits for it', async () => {
    const steps: string[] = [];
    const pull = async (stream: ReadableStreamDefaultController) => {
      await sleep(5_000);
      steps.push('body');
      stream.enqueue(Buffer.from(JSON.stringify(GOT.body)));
      stream.close();
    };
    const wrapper: LooseWrapper = async (_info, send) => {
      await send();
      steps.push('wrapper');
    };
    await get({
      script: () => new Response(new ReadableStream({ pull }, { highWaterMark: 0 })),
      wrappers: [wrapper],
    });
    expect(steps).toEqual(['body', 'wrapper']);
  });

  test('three wrappers → the first is the outermost, and each one runs inside of the one before', async () => {
    const storage = new AsyncLocalStorage<string>();
    const told: string[] = [];
    const makeWrapper =
      (name: string): LooseWrapper =>
      async (_info, send) => {
        told.push(`${name} begins`);
        const path = [storage.getStore(), name].filter(Boolean).join(' > ');
        await storage.run(path, send);
        told.push(`${name} ends`);
      };
    const script = () => {
      told.push(`sent in ${storage.getStore()}`);
      return Response.json(GOT.body);
    };
    const wrappers = ['a', 'b', 'c'].map(makeWrapper);
    expect(await get({ script, wrappers })).toMatchObject({ outcome: TRACKER, warnings: [] });
    expect(told.slice(0, 4)).toEqual(['a begins', 'b begins', 'c begins', 'sent in a > b > c']);
    expect(told.slice(4).sort()).toEqual(['a ends', 'b ends', 'c ends']);
  });

  test('an instance of a class → the wrapper is called on the instance, also if it is inherited', async () => {
    class Base implements Hooks {
      attempts: number[] = [];
      aroundAttempt<T>({ attempt }: AttemptInfo, send: () => Promise<T>): Promise<T> {
        this.attempts.push(attempt);
        return send();
      }
    }
    class Tracer extends Base {}
    const tracer = new Tracer();
    expect(await get({ wrappers: [], hooks: tracer })).toEqual(SUCCESS);
    expect(tracer.attempts).toEqual([1]);
  });

  test('a wrapper that changes its argument → the other hooks get the original values', async () => {
    const onRequest = vi.fn();
    const wrapper: LooseWrapper = (info, send) => {
      Object.assign(info, { attempt: 99 });
      return send();
    };
    await get({ wrappers: [wrapper], hooks: { onRequest } });
    expect(onRequest).toHaveBeenCalledWith(expect.objectContaining({ attempt: 1 }));
  });

  test('work before `send` → the request waits for it', async () => {
    const told: string[] = [];
    const wrapper: LooseWrapper = async (_info, send) => {
      await new Promise((resolve) => setTimeout(resolve, 900));
      told.push('ready');
      return await send();
    };
    const hooks = { onRequest: () => void told.push('sent') };
    expect(await get({ wrappers: [wrapper], hooks })).toEqual(SUCCESS);
    expect(told).toEqual(['ready', 'sent']);
  });
});

describe('the promise of `send`', () => {
  const observe = async (setup: Omit<Setup, 'wrappers'>) => {
    const outcomes: unknown[] = [];
    const wrapper: LooseWrapper = (_info, send) => {
      const attempt = send();
      attempt.then(
        () => outcomes.push('resolved'),
        (error) => outcomes.push(error),
      );
      return attempt;
    };
    const { outcome, warnings } = await get({ ...setup, wrappers: [wrapper] });
    return { outcome, outcomes, warnings };
  };

  test.each<[what: string, setup: Omit<Setup, 'wrappers'>]>([
    ['a broken connection', { script: networkFailure('ECONNRESET') }],
    ['a timeout', { script: SILENCE, call: { timeoutMs: 50 } }],
  ])('%s → onError is told before the promise rejects', async (_what, setup) => {
    const told: string[] = [];
    const wrapper: LooseWrapper = (_info, send) => send().finally(() => void told.push('settled'));
    const hooks = { onError: () => void told.push('onError') };
    await get({ ...setup, hooks, wrappers: [wrapper] });
    expect(told).toEqual(['onError', 'settled']);
  });

  test('a success → resolves', async () => {
    expect((await observe({})).outcomes).toEqual(['resolved']);
  });

  test.each<[what: string, setup: Omit<Setup, 'wrappers'>, error: unknown]>([
    ['a 404', { script: { status: 404 } }, expect.any(NotFoundError)],
    ['a body that is no JSON', { script: { body: '{' } }, expect.objectContaining({ status: 200 })],
    ['a broken connection', { script: networkFailure('ECONNRESET') }, expect.any(Error)],
    [
      'no response, and a fetch that ignores its signal',
      { script: SILENCE, call: { timeoutMs: 50 } },
      expect.any(TimeoutError),
    ],
    ['an abort', { script: SILENCE, call: { signal: AbortSignal.abort('enough') } }, undefined],
  ])('%s → rejects with the error of the call, and no warning', async (_what, setup, error) => {
    const { outcome, outcomes, warnings } = await observe(setup);
    if (error === undefined) expect(outcomes).toEqual([]);
    else expect(outcomes).toEqual([error]);
    if (error !== undefined) expect(outcomes[0]).toBe(outcome);
    expect(warnings).toEqual([]);
  });
});

describe('a wrapper that breaks the rules before `send`', () => {
  const boom = new Error('boom');
  const THREW = `${WARNS} threw an error, which the client ignores: boom`;
  const FORGOT = `${WARNS} did not call \`send\`; the client goes on without it`;

  test.each<[what: string, wrapper: LooseWrapper, warning: string]>([
    [
      'throws',
      () => {
        throw boom;
      },
      THREW,
    ],
    ['rejects', () => Promise.reject(boom), THREW],
    ['returns without calling it', () => undefined, FORGOT],
    ['resolves without calling it', async () => ({ data: 'mine' }), FORGOT],
    [
      'never settles',
      () => new Promise(() => {}),
      `${WARNS} did not call \`send\` within 1000 ms; the client goes on without it`,
    ],
  ])(
    '%s → the request is sent once, inside the other wrappers, and a warning tells why',
    async (_what, wrapper, warning) => {
      const others = [
        vi.fn<LooseWrapper>((_info, send) => send()),
        vi.fn<LooseWrapper>((_info, send) => send()),
      ];
      const [outer = wrapper, inner = wrapper] = others;
      expect(await get({ wrappers: [outer, wrapper, inner] })).toEqual({ ...SUCCESS, warnings: [warning] });
      for (const other of others) expect(other).toHaveBeenCalledOnce();
    },
  );

  test('throws, and the attempt fails → the call rejects with the failure of the attempt', async () => {
    const { outcome, sent, warnings } = await get({
      script: { status: 404 },
      wrappers: [() => Promise.reject(boom)],
    });
    expect(outcome).toBeInstanceOf(NotFoundError);
    expect({ sent, warnings }).toEqual({ sent: 1, warnings: [THREW] });
  });

  test('calls `send` after the client went on without the wrapper → nothing is sent again', async () => {
    const wrapper: LooseWrapper = async (_info, send) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return await send();
    };
    const late = () =>
      new Promise<Response>((resolve) => setTimeout(() => resolve(Response.json(GOT.body)), 2_000));
    const { outcome, sent, warnings } = await get({ script: late, wrappers: [wrapper] });
    expect({ outcome, sent }).toEqual({ outcome: TRACKER, sent: 1 });
    expect(warnings).toEqual([expect.stringContaining('within 1000 ms')]);
  });

  test('an abort while the wrapper works → the call rejects at once, and nothing is sent', async () => {
    const controller = new AbortController();
    const onDone = vi.fn();
    const wrapper: LooseWrapper = async (_info, send) => {
      setTimeout(() => controller.abort('enough'), 100);
      await new Promise((resolve) => setTimeout(resolve, 500));
      return await send();
    };
    const call = { signal: controller.signal };
    const { outcome, sent } = await get({ wrappers: [wrapper], hooks: { onDone }, call });
    expect({ outcome, sent }).toEqual({ outcome: 'enough', sent: 0 });
    expect(onDone).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ attempts: 0, durationMs: 100 }));
  });
});

describe('a wrapper that breaks the rules after `send`', () => {
  test.each<[what: string, wrapper: LooseWrapper]>([
    ['returns another value', (_info, send) => send().then(() => 'mine')],
    ['returns nothing', (_info, send) => void send()],
    ['never settles', (_info, send) => send().then(() => new Promise(() => {}))],
    ['calls `send` twice', (_info, send) => Promise.all([send(), send()])],
    ['calls `send` again after the attempt', (_info, send) => send().then(send)],
  ])('%s → the outcome of the one request, and no warning', async (_what, wrapper) => {
    expect(await get({ wrappers: [wrapper] })).toEqual(SUCCESS);
  });

  test('swallows the failure → the call rejects with it', async () => {
    const wrapper: LooseWrapper = (_info, send) => send().catch(() => 'mine');
    const { outcome, warnings } = await get({ script: { status: 404 }, wrappers: [wrapper] });
    expect(outcome).toBeInstanceOf(NotFoundError);
    expect(warnings).toEqual([]);
  });

  test.each<[what: string, wrapper: LooseWrapper]>([
    [
      'throws',
      (_info, send) => {
        send();
        throw new Error('boom');
      },
    ],
    [
      'rejects',
      async (_info, send) => {
        await send();
        throw new Error('boom');
      },
    ],
  ])('%s → the outcome of the request, and a warning', async (_what, wrapper) => {
    const warning = `${WARNS} threw an error, which the client ignores: boom`;
    expect(await get({ wrappers: [wrapper] })).toEqual({ ...SUCCESS, warnings: [warning] });
  });

  test('works for a minute after the response → the call does not wait', async () => {
    const onDone = vi.fn();
    const wrapper: LooseWrapper = async (_info, send) => {
      await send();
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    };
    await get({ wrappers: [wrapper], hooks: { onDone } });
    expect(onDone).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ durationMs: 0 }));
  });
});

test('an API key function that rejects → no attempt is wrapped', async () => {
  const wrapper = vi.fn<LooseWrapper>((_info, send) => send());
  const apiKey = () => Promise.reject(new Error('vault is sealed'));
  await get({ wrappers: [wrapper], options: { apiKey } });
  expect(wrapper).not.toHaveBeenCalled();
});

import { AsyncLocalStorage } from 'node:async_hooks';
import { expectTypeOf, test } from 'vitest';
import type { AttemptInfo, Hooks } from '../../src/observability/hooks.ts';

const storage = new AsyncLocalStorage<string>();

test('aroundAttempt → gets the facts of the attempt and `send`, and returns the result of `send`', () => {
  const hooks: Hooks = {
    aroundAttempt: (info, send) => {
      expectTypeOf(info).toEqualTypeOf<AttemptInfo>();
      return storage.run(info.callId, send);
    },
  };
  expectTypeOf(hooks).toExtend<Hooks>();
  class Tracer implements Hooks {
    async aroundAttempt<T>(_info: AttemptInfo, send: () => Promise<T>): Promise<T> {
      return await send();
    }
  }
  expectTypeOf<Tracer>().toExtend<Hooks>();
});

test('aroundAttempt that returns anything but the result of `send` → refused', () => {
  const forgetful: Hooks = {
    // @ts-expect-error The result of `send` is missing.
    aroundAttempt: async (_info, send) => {
      await send();
    },
  };
  // @ts-expect-error Only `send` can make the result.
  const inventive: Hooks = { aroundAttempt: async () => 'mine' };
  expectTypeOf([forgetful, inventive]).toExtend<Hooks[]>();
});

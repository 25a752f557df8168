import { afterAll } from 'vitest';

// Files share one process. If a file imports `undici` before anything calls the global `fetch`, this import decides how `fetch` sends
// and parses from then on. So let Node set up its own `fetch` first.
await fetch('data:,');

// `@hono/node-server` replaces the global `Request` and `Response`, which other servers do not expect.
const { Request, Response } = globalThis;
afterAll(() => {
  for (const [name, value] of Object.entries({ Request, Response }))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
});

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';
import { vi } from 'vitest';
import type { Block } from './readme.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The host that the README gives its service. */
const SERVICE = 'https://api.example.com/public/v1';

/** The secret that webhooks come with. */
export const SECRET = 'whsec-readme';

/** What a program has to itself: the service that it talks to, and what it leaves behind. */
export interface Stage extends AsyncDisposable {
  readonly fake: FakeTrackingService;
  /** A client of the test itself. */
  readonly client: TrackingClient;
  /** What was written to the console, one text a call. */
  readonly output: readonly string[];
  /** The servers that it started, in their order; each on a free port of loopback. */
  readonly servers: readonly Server[];
  /** Runs a block as it stands, and gives what it exports. */
  run(block: Block): Promise<Readonly<Record<string, unknown>>>;
}

/** What a program needs beside the usual. */
export interface Props {
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** The keys that the service accepts. Default: any. */
  readonly apiKeys?: readonly string[] | undefined;
}

/**
 * Sets the stage for one program of the README: its environment, and a fake service behind the host that it calls.
 * The program itself stays as it is.
 */
export async function setStage({ environment = {}, apiKeys }: Props = {}): Promise<Stage> {
  const fake = createFakeTrackingService(apiKeys === undefined ? {} : { apiKeys });
  const output: string[] = [];
  const servers: Server[] = [];
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'readme-'));
  const given = {
    TRACKING_BASE_URL: SERVICE,
    TRACKING_API_KEY: fake.apiKey,
    TRACKING_WEBHOOK_SECRET: SECRET,
    ...environment,
  };
  for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value);
  vi.stubGlobal('fetch', fetchWith(fake));
  for (const method of ['log', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...values) => void output.push(format(...values)));
  }
  listenOnFreePorts(servers);
  return {
    fake,
    client: new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch }),
    output,
    servers,
    run: async ({ id, code }) => {
      const file = join(folder, `${id.replace(' ', '-')}.ts`);
      await writeFile(file, code);
      return import(file);
    },
    [Symbol.asyncDispose]: async () => {
      vi.useRealTimers();
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      vi.unstubAllGlobals();
      for (const server of servers) server.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** The service of the README is the fake one; every other host is reached as ever. */
function fetchWith(fake: FakeTrackingService): typeof globalThis.fetch {
  const { fetch } = globalThis;
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    return url.origin === new URL(SERVICE).origin ? fake.fetch(input, init) : fetch(input, init);
  };
}

/** Ports like 3000 are often taken. */
function listenOnFreePorts(servers: Server[]): void {
  const { listen } = Server.prototype;
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...given: unknown[]) {
    servers.push(this);
    const onListening = given.find((value) => typeof value === 'function');
    return listen.call(this, { port: 0, host: '127.0.0.1' }, () => onListening?.());
  });
}

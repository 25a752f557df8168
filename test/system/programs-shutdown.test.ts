// Receivers of the documents as processes of their own. Clients hold on to their connections.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { makePool } from '../integration/postgres-schema.ts';
import { makeRecipeFolder } from '../integration/recipe-folder.ts';
import { describeWithPostgres, describeWithRedis } from '../integration/services.ts';
import { createDatabase } from '../integration/test-database.ts';
import { listening } from '../integration/webhook-loopback.ts';
import { readDocument } from '../readme/support/documents.ts';
import { recipeFiles } from '../readme/support/recipes.ts';
import { PollingProcesses } from './polling-processes.ts';
import { CLIENTS, openConnection, SECRET } from './stubborn-clients.ts';

/** A database of Redis that nothing else here uses, because the recipe has fixed keys. */
const REDIS_DATABASE = 15;

/** The shutdown of README.md. */
const [SHUTDOWN = ''] = /\nprocess\.once\('SIGTERM', [\s\S]*?\n\}\);\n/.exec(readDocument('README.md')) ?? [];

/** The shutdown of README.md, which closes the server as a page says. */
function shutdownOf(page: string): string {
  const [, close = 'missing'] = /`(server\.close\(\(\) => .*\))`/.exec(readDocument(page)) ?? [];
  return SHUTDOWN.replace('server.close()', close);
}

const NODE_SERVER = `import { createServer } from 'node:http';
import { toNodeHandler } from 'tracking-client/webhooks';
const server = createServer(toNodeHandler(webhooks)).listen(process.env.PORT);
`;

/** A handler without a recipe, for frameworks. */
const WEBHOOKS = `import { createWebhookHandler, MemoryDedupeStore, toNodeHandler } from 'tracking-client/webhooks';
const webhooks = createWebhookHandler({
  secret: process.env.TRACKING_WEBHOOK_SECRET,
  store: new MemoryDedupeStore(),
  onEvent: () => new Promise((resolve) => setTimeout(resolve, 20)),
});
`;

/** Each program, and the page of `docs/recipes/` whose files it imports. */
const PROGRAMS: readonly (readonly [name: string, code: string, recipe?: string])[] = [
  ['node:http', WEBHOOKS.replace(', toNodeHandler', '') + NODE_SERVER + SHUTDOWN],
  [
    'Express',
    `import express from 'express';
${WEBHOOKS}
const server = express().all('/webhooks', toNodeHandler(webhooks)).listen(process.env.PORT);
${SHUTDOWN}`,
  ],
  [
    'Express with express.json()',
    `import express from 'express';
${WEBHOOKS}
const server = express().use(express.json()).all('/webhooks', toNodeHandler(webhooks)).listen(process.env.PORT);
${SHUTDOWN}`,
  ],
  [
    'Fastify',
    `import fastify from 'fastify';
${WEBHOOKS}
const app = fastify();
await app.all('/webhooks', toNodeHandler(webhooks)).listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
${SHUTDOWN.replace('server.close()', 'app.close()').replace('server.', 'app.server.')}`,
  ],
  [
    'Hono',
    `import { serve } from '@hono/node-server';
import { Hono } from 'hono';
${WEBHOOKS}
const app = new Hono().all('/webhooks', (context) => webhooks(context.req.raw));
const server = serve({ fetch: app.fetch, port: Number(process.env.PORT) });
${SHUTDOWN}`,
  ],
  [
    'exactly-once.md',
    `import { openPool } from './src/database.ts';
import { orderWebhooks } from './src/webhooks.ts';
const pool = openPool();
const webhooks = orderWebhooks(pool);
${NODE_SERVER}${shutdownOf('docs/webhooks.md')}`,
    'exactly-once',
  ],
  [
    'postgres.md',
    `import { openPool } from './src/database.ts';
import { orderWebhooks } from './src/orders.ts';
const pool = openPool();
const webhooks = orderWebhooks(pool);
${NODE_SERVER}${shutdownOf('docs/webhooks.md')}`,
    'postgres',
  ],
  [
    'pg-boss.md',
    `import { openPool } from './src/database.ts';
import { eventWebhooks, startJobs } from './src/events.ts';
const pool = openPool();
const boss = await startJobs(process.env.DATABASE_URL ?? '', async () => {});
const webhooks = eventWebhooks(pool, boss);
${NODE_SERVER}${shutdownOf('docs/recipes/pg-boss.md')}`,
    'pg-boss',
  ],
  [
    'bullmq.md',
    `import { Redis } from 'ioredis';
import { eventWebhooks, eventWorker } from './src/events.ts';
const redis = new Redis(process.env.REDIS_URL ?? '');
const { webhooks, queue } = eventWebhooks(redis);
const worker = eventWorker(async () => {});
${NODE_SERVER}${shutdownOf('docs/recipes/bullmq.md')}`,
    'bullmq',
  ],
];

await describeWithRedis('receivers of the documents', async (redisUrl) => {
  await describeWithPostgres('as processes', (postgresUrl) => {
    const database = new URL(`/${REDIS_DATABASE}`, redisUrl).href;
    const processes = new PollingProcesses();
    const cleanUps: (() => unknown)[] = [];
    afterEach(async () => {
      processes.killAll();
      for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
    });
    afterAll(async () => {
      const redis = new Redis(database);
      await redis.flushdb();
      await redis.quit();
    });

    async function startProgram(code: string, recipe: string) {
      const { folder, remove } = await makeRecipeFolder(recipe);
      const { url, drop } = await createDatabase(postgresUrl);
      cleanUps.push(remove, drop);
      const tables = makePool({ connectionString: url });
      await tables.query(recipeFiles(recipe).find(({ path }) => path === 'schema.sql')?.code ?? '');
      await tables.end();
      await writeFile(join(folder, 'program.ts'), code);
      const free = await listening(createServer());
      await free.close();
      const env = {
        PORT: `${free.port}`,
        TRACKING_WEBHOOK_SECRET: SECRET,
        DATABASE_URL: url,
        REDIS_URL: database,
      };
      return { port: free.port, ...(await processes.startWorker(folder, env, 'program.ts')) };
    }

    it.each(PROGRAMS.map(([name, code, recipe = 'web-server']) => [name, code, recipe] as const))(
      '%s, SIGTERM while clients hold on to their connections → exit code 0',
      async (_name, code, recipe) => {
        const { port, lines, end } = await startProgram(code, recipe);
        const sockets = await vi.waitFor(
          () => Promise.all(Object.keys(CLIENTS).map(() => openConnection(port))),
          { timeout: 60_000, interval: 50 },
        );
        cleanUps.push(() => sockets.map((socket) => socket.destroy()));
        const [first] = sockets;
        if (first === undefined) throw new Error('Expected a connection');
        const responded = once(first, 'data');
        for (const [index, begin] of Object.values(CLIENTS).entries()) {
          const socket = sockets[index];
          if (socket !== undefined) begin(socket);
        }
        await responded;
        expect([await end('SIGTERM'), lines], lines.join('\n')).toEqual([0, []]);
      },
    );
  });
});

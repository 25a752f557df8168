import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { toNodeHandler, type WebhookHandler } from '../../src/webhooks/index.ts';
import { listening, type Running } from './webhook-loopback.ts';

/** A way to receive webhooks. */
export interface Host {
  readonly name: string;
  /** True if a body parser of the host comes first and responds to some bad bodies itself. */
  readonly parses: boolean;
  start(webhooks: WebhookHandler): Promise<Running>;
}

export const MIB = 2 ** 20;

/** Every host that is supported, with and without body parsers of its own. */
export const HOSTS: readonly Host[] = [
  {
    name: 'node:http',
    parses: false,
    start: (webhooks) => listening(createServer(toNodeHandler(webhooks))),
  },
  {
    name: 'Express 5',
    parses: false,
    start: (webhooks) => listenExpress(webhooks),
  },
  {
    name: 'Express 5 after express.json()',
    parses: true,
    start: (webhooks) => listenExpress(webhooks, express.json({ limit: '20mb' })),
  },
  {
    name: 'Express 5 after express.raw()',
    parses: true,
    start: (webhooks) => listenExpress(webhooks, express.raw({ limit: '20mb', type: () => true })),
  },
  {
    name: 'Fastify 5',
    parses: true,
    start: (webhooks) => listenFastify(webhooks, fastify({ bodyLimit: 20 * MIB })),
  },
  {
    name: 'Fastify 5 without its body parsers',
    parses: false,
    start: (webhooks) => {
      const app = fastify();
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', (_request, _payload, done) => done(null));
      return listenFastify(webhooks, app);
    },
  },
  {
    name: 'Hono on Node',
    parses: false,
    start: async (webhooks) => {
      const app = new Hono().all('/webhooks', (context) => webhooks(context.req.raw));
      return new Promise((resolve) => {
        const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
          resolve({ port, close: () => new Promise((done) => server.close(() => done())) });
        });
      });
    },
  },
];

function listenExpress(webhooks: WebhookHandler, ...parsers: express.RequestHandler[]): Promise<Running> {
  const app = express();
  for (const parser of parsers) app.use(parser);
  return listening(createServer(app.all('/webhooks', toNodeHandler(webhooks))));
}

async function listenFastify(webhooks: WebhookHandler, app: ReturnType<typeof fastify>): Promise<Running> {
  app.all('/webhooks', toNodeHandler(webhooks));
  await app.listen({ port: 0, host: '127.0.0.1' });
  // Sound: a server that listens on TCP has an address of this form.
  const { port } = app.server.address() as AddressInfo;
  return { port, close: () => app.close() };
}

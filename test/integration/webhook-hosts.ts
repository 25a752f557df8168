import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { bodyParser } from '@koa/bodyparser';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import serverless from 'serverless-http';
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
    name: 'Express 5 below a mounted path',
    parses: false,
    start: (webhooks) => listening(createServer(express().use('/webhooks', toNodeHandler(webhooks)))),
  },
  {
    name: 'Express 5 in serverless-http',
    parses: true,
    start: (webhooks) => listenServerless(express().all('/webhooks', toNodeHandler(webhooks))),
  },
  {
    name: 'Express 5 after express.json() in serverless-http',
    parses: true,
    start: (webhooks) => {
      const app = express().use(express.json({ limit: '20mb' }));
      return listenServerless(app.all('/webhooks', toNodeHandler(webhooks)));
    },
  },
  {
    name: 'Koa 3',
    parses: false,
    start: (webhooks) => {
      const app = new Koa().use((context) => toNodeHandler(webhooks)(context.req, context.res));
      return listening(createServer(app.callback()));
    },
  },
  {
    name: 'Koa 3 after its body parser',
    parses: true,
    start: (webhooks) => {
      const app = new Koa().use(bodyParser({ jsonLimit: '20mb' })).use((context) => {
        const request = Object.assign(context.req, { body: context.request.body });
        return toNodeHandler(webhooks)(request, context.res);
      });
      // Koa logs each body that its parser refuses.
      app.silent = true;
      return listening(createServer(app.callback()));
    },
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

/** Sends each request to the app as an event of AWS Lambda with payload format 2.0, and the result back. */
function listenServerless(app: express.Express): Promise<Running> {
  const handle = serverless(app);
  const toEvent = async (incoming: IncomingMessage) => {
    const { method, url: rawPath, headers } = incoming;
    const chunks: Buffer[] = await incoming.toArray();
    const http = { method, path: rawPath, sourceIp: '127.0.0.1' };
    const body = Buffer.concat(chunks).toString('base64');
    return { version: '2.0', rawPath, headers, body, isBase64Encoded: true, requestContext: { http } };
  };
  const server = createServer(async (incoming, outgoing) => {
    const result = await handle(await toEvent(incoming), {});
    // Sound: this is what serverless-http returns for events of this format.
    const { statusCode, headers, body } = result as {
      statusCode: number;
      headers: Record<string, string>;
      body: string;
    };
    outgoing.writeHead(statusCode, headers).end(body);
  });
  return listening(server);
}

async function listenFastify(webhooks: WebhookHandler, app: ReturnType<typeof fastify>): Promise<Running> {
  app.all('/webhooks', toNodeHandler(webhooks));
  await app.listen({ port: 0, host: '127.0.0.1' });
  // Sound: a server that listens on TCP has an address of this form.
  const { port } = app.server.address() as AddressInfo;
  return { port, close: () => app.close() };
}

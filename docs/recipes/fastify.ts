// src/fastify.ts
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toAnswer } from './to-answer.ts';

/** Call `app.setErrorHandler(trackingErrors)` before you add routes. */
export function trackingErrors(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = toAnswer(error, (message, err) => request.log.error({ err }, message));
  if (answer === undefined) throw error; // Fastify's own handler responds
  return reply.code(answer.status).headers(answer.headers).send(answer.body);
}

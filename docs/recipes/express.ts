// src/express.ts
import type { NextFunction, Request, Response } from 'express';
import { toAnswer } from './to-answer.ts';

/** Express 5: call `app.use(trackingErrors)` after all routes. */
export function trackingErrors(
  error: unknown,
  _request: Request,
  response: Response,
  next: NextFunction,
): void {
  const answer = response.headersSent ? undefined : toAnswer(error);
  if (answer === undefined) next(error);
  else response.status(answer.status).set(answer.headers).json(answer.body);
}

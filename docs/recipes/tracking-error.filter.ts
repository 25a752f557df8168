// src/tracking-error.filter.ts
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import type { Response } from 'express';
import { TrackingError } from 'tracking-client';
import { toAnswer } from './to-answer';

/** NestJS: call `app.useGlobalFilters(new TrackingErrorFilter())`. */
@Catch(TrackingError)
export class TrackingErrorFilter implements ExceptionFilter<TrackingError> {
  catch(error: TrackingError, host: ArgumentsHost): void {
    const answer = toAnswer(error, (message) => Logger.error(message, error.stack, 'Tracking'));
    if (answer === undefined) throw error;
    host.switchToHttp().getResponse<Response>().status(answer.status).set(answer.headers).json(answer.body);
  }
}

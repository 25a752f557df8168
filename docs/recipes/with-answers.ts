// src/with-answers.ts
import { toAnswer } from './to-answer';

type Route<Context> = (request: Request, context: Context) => Promise<Response>;

/** Next.js: `export const GET = withAnswers(async (request, { params }) => …)`. */
export function withAnswers<Context>(route: Route<Context>): Route<Context> {
  return (request, context) =>
    route(request, context).catch((error: unknown) => {
      const answer = toAnswer(error);
      if (answer === undefined) throw error;
      return Response.json(answer.body, answer);
    });
}

import type { RawAnswer } from './transport.ts';

/** A response whose body can be read although the pipeline has read it already. */
export function rebuiltResponse(answer: RawAnswer, url: string): Response {
  const { status, statusText, headers } = answer;
  const hasNoBody = status === 204 || status === 205;
  // A reason phrase may hold bytes that `Response` refuses.
  const init = { status, statusText: /^[\t\x20-\x7e]*$/.test(statusText) ? statusText : '', headers };
  const response = new Response(hasNoBody ? null : answer.text, init);
  Object.defineProperty(response, 'url', { value: url });
  return response;
}

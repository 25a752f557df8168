import { callStore } from '../webhooks/dedupe-store.ts';

/** Sends one statement for all requests. Resolves to one result for each request, in the same order. */
export type Send<Request, Result> = (requests: readonly Request[]) => Promise<readonly Result[]>;

/**
 * Lets calls share statements: calls made while a statement is under way share the next one. If it fails, all its calls reject.
 * If a statement takes longer than `limitMs`, later calls do not wait for it.
 */
export function batched<Request, Result>(
  limitMs: number,
  send: Send<Request, Result>,
): Send<Request, Result> {
  /** The statement that further calls can share. */
  let next: { readonly requests: Request[]; readonly results: Promise<readonly Result[]> } | undefined;
  let canSend: Promise<unknown> = Promise.resolve();

  function prepareNext() {
    const requests: Request[] = [];
    const results = canSend.then(() => {
      next = undefined;
      return send(requests);
    });
    canSend = canSend.then(() => callStore(() => results, limitMs)).catch(() => {});
    return { requests, results };
  }

  return async (requests) => {
    if (requests.length === 0) return [];
    next ??= prepareNext();
    const { requests: shared, results } = next;
    const start = shared.length;
    for (const request of requests) shared.push(request);
    return (await results).slice(start, start + requests.length);
  };
}

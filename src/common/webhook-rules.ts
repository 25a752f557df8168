/** The service waits this long for the response to a webhook (docs/service.md 8.5). */
export const WEBHOOK_TIMEOUT_MS = 15_000;

/** True if the JSON body of a response says that the webhook has failed, whatever the status is (docs/service.md 8.11). */
export function saysFailure(body: unknown): boolean {
  return [false, 'false'].includes(Object(body).success);
}

// src/lambda.ts
import type { WebhookHandler } from 'tracking-client/webhooks';

/** The parts of `APIGatewayProxyEventV2` (`@types/aws-lambda`) that this file reads. */
export interface HttpEvent {
  rawPath: string;
  rawQueryString: string;
  headers: Record<string, string>;
  body?: string;
  isBase64Encoded: boolean;
  requestContext: { domainName: string; http: { method: string } };
}

export function toLambda(webhooks: WebhookHandler) {
  return async ({ body = '', headers, ...event }: HttpEvent) => {
    const { domainName, http } = event.requestContext;
    const bytes =
      http.method === 'POST' ? Buffer.from(body, event.isBase64Encoded ? 'base64' : 'utf8') : null;
    const url = new URL(`https://${domainName}${event.rawPath}`);
    url.search = event.rawQueryString;
    const response = await webhooks(new Request(url, { method: http.method, headers, body: bytes }));
    return {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: await response.text(),
    };
  };
}

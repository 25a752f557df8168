import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createWebhookHandler, toNodeHandler, type WebhookTracker } from 'tracking-client/webhooks';
import {
  EXIT,
  explainListenFailure,
  formatReason,
  print,
  printJson,
  type Terminal,
  untilAborted,
  warn,
} from './terminal.ts';
import { eventText, milestoneText, plain } from './text.ts';

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly secret?: string | undefined;
  readonly json?: boolean | undefined;
  readonly terminal: Terminal;
}

/** How long a webhook under way may take to end when the command stops. */
const STOP_GRACE_MS = 2000;

/** Receives webhooks and prints each event once, until Ctrl-C. */
export async function listen({ host, port, secret, json, terminal }: ListenOptions): Promise<number> {
  const { colours, signal } = terminal;
  const time = () => colours.dim(new Date().toTimeString().slice(0, 8));
  const show = ({ trackingNumber, trackerId }: WebhookTracker, text: string, value: object) => {
    if (json) return printJson(terminal, { trackingNumber, trackerId, ...value });
    print(terminal, `${time()} ${colours.bold(plain(trackingNumber ?? trackerId ?? 'unknown'))} ${text}`);
  };
  const handler = createWebhookHandler({
    secret: secret ?? false,
    onError: (error) => warn(terminal, plain(formatReason(error))),
    onEvent: (event, { message: { tracker, metadata } }) => {
      const text = `${milestoneText(event.statusMilestone, colours)} ${eventText(event, colours)}`;
      show(tracker, text, { topic: metadata?.topic, event });
    },
    onProofOfDelivery: ({ tracker, metadata, data }) =>
      show(tracker, 'proof of delivery', { topic: metadata.topic, data }),
    onOther: (message) => {
      const topic = message.metadata?.topic ?? 'unknown';
      if (json) printJson(terminal, message);
      else print(terminal, `${time()} a webhook of the topic ${plain(topic)}`);
    },
    onReport: ({ handled, duplicates }) => {
      if (handled === 0 && duplicates > 0 && !json)
        print(terminal, `${time()} ${colours.dim('all known already')}`);
    },
    onRefused: (error) => warn(terminal, `refused: ${plain(formatReason(error))}`),
  });
  const server = createServer(toNodeHandler(handler));
  await new Promise<void>((done, fail) => {
    server.once('error', (error) => fail(explainListenFailure(error, host, port)));
    server.listen(port, host, done);
  });
  // `address()` is an object for every server that listens on a port.
  const bound = (server.address() as AddressInfo).port;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}/webhooks`;
  if (json) printJson(terminal, { listening: url });
  else print(terminal, `Webhook URL  ${colours.green(url)}\n${colours.dim('  Ctrl-C stops it.')}`);
  if (secret === undefined)
    warn(
      terminal,
      'Without a secret, whoever reaches this URL is believed; TRACKING_WEBHOOK_SECRET sets one.',
    );
  await untilAborted(signal);
  await handler.close({ timeoutMs: STOP_GRACE_MS });
  server.close();
  server.closeAllConnections();
  return EXIT.done;
}

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import { createWebhookHandler, toNodeHandler, type WebhookTracker } from 'tracking-client/webhooks';
import { systemClock } from '../common/clock.ts';
import { addListenFlags, JSON_HELP, SECRET_HELP, secretOption } from './flags.ts';
import { wrap } from './layout.ts';
import {
  explainListenFailure,
  formatClock,
  formatEvent,
  formatMilestone,
  formatReason,
  plain,
  type Terminal,
  untilAborted,
} from './terminal.ts';

interface ListenFlags {
  readonly host: string;
  readonly port: number;
  readonly secret?: string;
  readonly json?: boolean;
}

const STOP_GRACE_MS = 2000;

export function addListen(program: Command, terminal: Terminal): void {
  const command = program.command('listen').description('Receive webhooks, and print each event once');
  addListenFlags(command, 3000)
    .addOption(secretOption('--secret <secret>', `secret of the webhooks; ${SECRET_HELP}`))
    .option('--json', JSON_HELP)
    .action((flags: ListenFlags) => listen(flags, terminal));
}

async function listen({ host, port, secret, json }: ListenFlags, terminal: Terminal): Promise<void> {
  const { colours } = terminal;
  const time = () => formatClock(Date.now(), colours);
  const show = ({ trackingNumber, trackerId }: WebhookTracker, text: string, value: object) => {
    if (json) return terminal.printJson({ trackingNumber, trackerId, ...value });
    const name = colours.bold(plain(trackingNumber ?? trackerId ?? 'unknown'));
    terminal.print(wrap(`${time()} `, `${name} ${text}`, terminal.width));
  };
  const handler = createWebhookHandler({
    secret: secret ?? false,
    onError: (error) => terminal.warn(plain(formatReason(error))),
    onEvent: (event, { message: { tracker, metadata } }) => {
      const text = `${formatMilestone(event.statusMilestone, colours)}: ${formatEvent(event, colours)}`;
      show(tracker, text, { topic: metadata?.topic, event });
    },
    onProofOfDelivery: ({ tracker, metadata, data }) =>
      show(tracker, 'proof of delivery', { topic: metadata.topic, data }),
    onOther: (message) => {
      const what =
        message.kind === 'other'
          ? `with the unknown topic "${plain(message.metadata?.topic)}"`
          : 'without events';
      if (json) terminal.printJson(message);
      else terminal.print(`${time()} webhook ${what}; --json prints the content`);
    },
    onReport: ({ handled, duplicates }) => {
      if (handled === 0 && duplicates > 0 && !json)
        terminal.print(`${time()} ${colours.dim('duplicate: its events are printed above')}`);
    },
    onRefused: (error) => terminal.warn(`Refused a webhook: ${plain(formatReason(error))}`),
  });
  const server = createServer(toNodeHandler(handler));
  await new Promise<void>((done, fail) => {
    server.once('error', (error) => fail(explainListenFailure(error, host, port)));
    server.listen(port, host, done);
  });
  // Safe cast: `address()` is an object for every server that listens on a port.
  const bound = (server.address() as AddressInfo).port;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}/webhooks`;
  if (json) terminal.printJson({ listening: url });
  else terminal.print(`Webhook URL  ${colours.green(url)}\n${colours.dim('  Ctrl-C stops listening.')}`);
  if (secret === undefined)
    terminal.warn(
      'No secret is set, so webhooks from anyone are accepted; set TRACKING_WEBHOOK_SECRET to require one',
    );
  await untilAborted(terminal.signal);
  // A webhook that is arriving still gets its response.
  const timer = systemClock.setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
  await new Promise((done) => server.close(done));
  systemClock.clearTimeout(timer);
}

import { VERSION } from '../../config/config.ts';
import type { Flags } from './flags.ts';
import type { Paint } from './paint.ts';

function keysText(count: number): string {
  if (count === 0) return 'any key is accepted';
  return count === 1 ? 'one key is accepted' : `${count} keys are accepted`;
}

function webhooksText({ webhookUrl, webhookSecret }: Flags): string {
  if (webhookUrl === undefined) return 'none; --webhook-url turns them on';
  return `${webhookUrl}, ${webhookSecret === undefined ? 'without a secret' : 'with the secret'}`;
}

function playsText({ plays, speed }: Flags): string {
  const names = plays.join(', then ');
  if (speed === Number.POSITIVE_INFINITY) return `${names}, all at once`;
  return speed === 1 ? `${names}, in real time` : `${names}, ${speed} times faster than real time`;
}

/** What the command says when it is ready. */
export function greeting(url: string, flags: Flags, paint: Paint): string {
  const rows = [
    ['Base URL', paint.good(url)],
    ['API key', keysText(flags.apiKeys.length)],
    ['Webhooks', webhooksText(flags)],
    ['Play', playsText(flags)],
  ];
  const lines = rows.map(([name = '', text]) => `  ${name.padEnd(9)} ${text}`);
  return [paint.strong(`tracking-client-fake ${VERSION}`), ...lines, paint.faint('  Ctrl-C stops it.')].join(
    '\n',
  );
}

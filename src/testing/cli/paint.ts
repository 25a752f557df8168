/** Colours text for a terminal, or leaves it as it is. */
export interface Paint {
  readonly good: (text: string) => string;
  readonly doubtful: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly faint: (text: string) => string;
  readonly strong: (text: string) => string;
}

function code(open: number, close: number) {
  return (text: string) => `\u001b[${open}m${text}\u001b[${close}m`;
}

function plain(text: string): string {
  return text;
}

const COLOURED: Paint = {
  good: code(32, 39),
  doubtful: code(33, 39),
  bad: code(31, 39),
  faint: code(2, 22),
  strong: code(1, 22),
};

const PLAIN: Paint = { good: plain, doubtful: plain, bad: plain, faint: plain, strong: plain };

/** Colours for a terminal, unless `NO_COLOR` holds anything (no-color.org) or the terminal is dumb. */
export function paintFor(isTerminal: boolean, environment: NodeJS.ProcessEnv): Paint {
  const isRefused = (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  return isTerminal && !isRefused ? COLOURED : PLAIN;
}

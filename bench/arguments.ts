import { parseArgs } from 'node:util';

/** The help text of an option; `value` names its value, for example `<text>`. */
interface OptionHelp {
  readonly value?: string;
  readonly help: string;
}

interface Program<Options> {
  /** The command that runs the program. */
  readonly command: string;
  /** Begins with what the program measures. */
  readonly summary: string;
  readonly options: Options;
  /** The parts of the program and what they measure; without a part as an argument all of them run. */
  readonly parts?: Readonly<Record<string, string>>;
}

type Values<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends { readonly value: string }
    ? string | undefined
    : boolean;
};

/** Reads the arguments of a program. `--help` prints the options. An unusable argument ends the program with one line. */
export function readArguments<const Options extends Readonly<Record<string, OptionHelp>>>(
  program: Program<Options>,
): { readonly values: Values<Options>; readonly parts: readonly string[] } {
  const named = Object.entries<OptionHelp>(program.options);
  const config = named.map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }] as const);
  const known = Object.keys(program.parts ?? {});
  const { values, positionals, tokens } = parseArgs({
    options: { ...Object.fromEntries(config), help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  if (values['help']) {
    console.log(formatHelp(program));
    process.exit();
  }
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    if (!Object.hasOwn(program.options, name)) {
      const names = [...named.map(([each, { value = '' }]) => `--${each} ${value}`.trim()), '--help'];
      refuse(`Unknown option "${rawName}"; known options: ${names.join(', ')}`);
    }
    const expected = program.options[name]?.value;
    if (expected !== undefined && value === undefined) refuse(`"${rawName}" needs a value: ${expected}`);
    if (expected === undefined && value !== undefined) refuse(`"${rawName}" takes no value, got "${value}"`);
  }
  const unknown = positionals.find((part) => !known.includes(part));
  if (unknown !== undefined) {
    const parts = known.length > 0 ? `known parts: ${known.join(', ')}` : 'this program has no parts';
    refuse(`Unknown argument "${unknown}"; ${parts}`);
  }
  const flags = named.map(([name, { value }]) => [name, values[name] ?? (value ? undefined : false)]);
  // The loop above checked that an option has a string exactly if it has a value.
  const checked = Object.fromEntries(flags) as Values<Options>;
  return { values: checked, parts: positionals.length > 0 ? positionals : known };
}

/** Ends the program, because an argument cannot be used. */
export function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}

function formatHelp({ command, summary, options, parts = {} }: Program<Record<string, OptionHelp>>): string {
  const optionLines = Object.entries(options).map(([name, { value = '', help }]): [string, string] => [
    `--${name} ${value}`.trim(),
    help,
  ]);
  const lines = [...Object.entries(parts), ...optionLines, ['--help', 'Prints this help.'] as const];
  const width = Math.max(...lines.map(([left]) => left.length));
  const list = lines.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
  const usage = `Usage: npm run ${command} -- [options]${Object.keys(parts).length > 0 ? ' [part ...]' : ''}`;
  return [summary, '', usage, '', ...list].join('\n');
}

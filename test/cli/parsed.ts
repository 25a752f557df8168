import { createProgram } from '../../src/cli/program.ts';
import { makeTerminal } from './make-terminal.ts';

/**
 * Reads a command line without running it.
 *
 * @param name - the name of the program
 * @param args - what follows it
 * @returns the flags of the command, or of the subcommand that is named
 * @throws CommanderError where it is no command line
 */
export function parsed<Flags>(name: string, args: readonly string[]): Flags {
  const program = createProgram(name, makeTerminal().terminal, () => {});
  for (const command of program.commands.length > 0 ? program.commands : [program]) command.action(() => {});
  program.parse([...args], { from: 'user' });
  const command = program.commands.find((one) => one.name() === args[0]) ?? program;
  // The caller names the flags that the command has.
  return command.opts() as Flags;
}

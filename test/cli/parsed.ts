import { createProgram } from '../../src/cli/program.ts';
import { makeTerminal } from './make-terminal.ts';

/**
 * Reads a command line without running it.
 *
 * @param args - a subcommand and what follows it
 * @returns the flags of the subcommand
 * @throws CommanderError where it is no command line
 */
export function parsed<Flags>(args: readonly string[]): Flags {
  const program = createProgram(makeTerminal().terminal, () => {});
  for (const command of program.commands) command.action(() => {});
  program.parse([...args], { from: 'user' });
  const command = program.commands.find((candidate) => candidate.name() === args[0]) ?? program;
  // The caller names the flags that the command has.
  return command.opts() as Flags;
}

import { PLAY_NAMES } from '../shipments/plays.ts';

/** The shape of the command on one line. */
export const USAGE =
  'tracking-client-fake [--port 4010] [--webhook-url <url>] [--speed 60] [--play delivered]';

/** What `--help` prints. */
export const HELP = `Usage: ${USAGE}

Serves a fake tracking service over HTTP, for programs in any language. It keeps
everything in memory, and prints each request and each webhook in one line.

  -p, --port <number>         Port; 0 for any free one. Default 4010
      --host <address>        Address to bind. Default 127.0.0.1
      --play <name>           What happens to each new tracking number. Give it again,
                              and the plays take turns. Default delivered
                              ${PLAY_NAMES.join(', ')}
      --speed <number>        How many times faster than real time. Default 1; the play
                              delivered takes 77 hours, at 60 about 77 minutes
      --webhook-url <url>     Where to push webhooks. Default: no webhooks
      --webhook-secret <s>    Sent with each push as "Authorization: Bearer <s>"
      --duplicates <number>   Sends each push so many times more. Default 0
      --shuffle               Sends what waits in another order
      --api-key <key>         A key to accept; up to 20. Default: any key
      --per-call              Gives the account the per-call plan, too
      --seed <text>           Decides every id. Default 1
  -h, --help                  Prints this
  -v, --version               Prints the version

Stop it with Ctrl-C.`;

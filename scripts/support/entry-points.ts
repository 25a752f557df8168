/** Maps the file of each entry point in `dist`, without its extension, to its source. */
export const ENTRY_POINTS = {
  index: 'src/index.ts',
  events: 'src/events/index.ts',
  webhooks: 'src/webhooks/index.ts',
  redis: 'src/redis/index.ts',
  postgres: 'src/postgres/index.ts',
  opentelemetry: 'src/opentelemetry/index.ts',
  testing: 'src/testing/index.ts',
  'testing/msw': 'src/testing/msw.ts',
};

/** Maps each program of the package to its source. */
export const COMMANDS = {
  'tracking-client': 'src/cli/main.ts',
};

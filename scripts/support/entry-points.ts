/** Every entry point of the package: its file in `dist` without extension, and its source. */
export const ENTRY_POINTS = {
  index: 'src/index.ts',
  webhooks: 'src/webhooks/index.ts',
  redis: 'src/redis/index.ts',
  postgres: 'src/postgres/index.ts',
  opentelemetry: 'src/opentelemetry/index.ts',
  testing: 'src/testing/index.ts',
  'testing/msw': 'src/testing/msw.ts',
};

/** The program of the package, likewise. */
export const COMMANDS = {
  'tracking-client': 'src/cli/main.ts',
};

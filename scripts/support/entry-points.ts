/** Every entry point of the package: its file in `dist` without extension, and its source. */
export const ENTRY_POINTS = {
  index: 'src/index.ts',
  webhooks: 'src/webhooks/index.ts',
  redis: 'src/redis/index.ts',
  postgres: 'src/postgres/index.ts',
  testing: 'src/testing/index.ts',
  'testing/msw': 'src/testing/msw.ts',
};

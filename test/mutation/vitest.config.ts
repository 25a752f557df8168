import { defineConfig } from 'vitest/config';
import repository from '../../vitest.config.ts';

export default defineConfig({
  resolve: repository.resolve ?? {},
  plugins: [
    {
      name: 'processes, not threads',
      // Stryker asks for threads, in which a test cannot set the time zone.
      configureVitest: ({ project }) => {
        project.config.pool = 'forks';
      },
    },
  ],
  test: {
    isolate: false,
    setupFiles: ['test/support/reset-after-each.ts'],
    // Stryker runs all of these for a change in code that runs at import, so test-mutation.ts begins with a folder's own tests.
    include: [process.env['MUTATION_TESTS'] ?? ''],
    testTimeout: 20_000,
  },
});

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
    // The folder's own, named by scripts/test-mutation.ts: a change that is made when a module loads runs all that is included.
    include: [process.env['MUTATION_TESTS'] ?? ''],
    testTimeout: 20_000,
  },
});

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
    // A change that is made when a module loads runs all of these, so scripts/test-mutation.ts begins with a folder's own tests.
    include: [process.env['MUTATION_TESTS'] ?? ''],
    // Reads the sources, which look different while they are broken.
    exclude: ['test/testing/imports.test.ts'],
    testTimeout: 20_000,
  },
});

import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/** Every test takes less than a tenth of this on a quiet machine, and a busy machine may take ten times as long. */
const TIME_LIMITS = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000 } } };

const src = fileURLToPath(new URL('./src', import.meta.url));

export default defineConfig({
  resolve: {
    // Map the package's own names to its sources, as tsconfig.json does, so that tests and examples read like a user's code.
    alias: [
      { find: /^tracking-client\/testing\/msw$/, replacement: `${src}/testing/msw.ts` },
      { find: /^tracking-client\/(\w+)$/, replacement: `${src}/$1/index.ts` },
      { find: /^tracking-client$/, replacement: `${src}/index.ts` },
    ],
  },
  test: {
    sequence: { shuffle: true, sequencer: LongFilesFirst },
    // The default leaves one core unused, which is half of a machine with two.
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          isolate: false,
          setupFiles: ['test/support/reset-after-each.ts'],
          ...TIME_LIMITS,
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**', 'test/system/**', 'test/consumers/**', 'test/contract/**'],
        },
      },
      {
        extends: true,
        test: {
          name: 'contract',
          isolate: false,
          setupFiles: ['test/support/reset-after-each.ts'],
          ...TIME_LIMITS,
          include: ['test/contract/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          isolate: false,
          setupFiles: ['test/support/own-fetch.ts'],
          ...TIME_LIMITS,
          include: ['test/integration/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          isolate: false,
          globalSetup: ['test/support/build-package.ts'],
          setupFiles: ['test/support/own-fetch.ts'],
          ...TIME_LIMITS,
          include: ['test/system/**/*.test.ts'],
          // These tests mostly wait for servers and child processes.
          maxWorkers: 5,
          // Vitest runs projects with different numbers of workers one after the other.
          sequence: { groupOrder: 1 },
          // They measure real time, which a busy machine can disturb.
          retry: 1,
        },
      },
      {
        extends: true,
        test: {
          name: 'types',
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            // This compiler is written in Go and takes a third of the time.
            checker: fileURLToPath(new URL('./node_modules/typescript-native/bin/tsc', import.meta.url)),
            include: ['test/types/**/*.test-d.ts'],
            tsconfig: './tsconfig.json',
          },
        },
      },
    ],
  },
});

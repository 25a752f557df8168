import { defineConfig } from 'vitest/config';

// Vitest loads the package in place of Node, as it also does for packages that are linked or partly mocked.
const server = { deps: { inline: ['tracking-client'] } };

export default defineConfig({ test: { server, testTimeout: 30_000 } });

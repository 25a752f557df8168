import { defineConfig } from 'vitest/config';

// Vitest loads the package in place of Node, as it also does for packages that are linked or partly mocked.
export default defineConfig({ test: { server: { deps: { inline: ['tracking-client'] } } } });

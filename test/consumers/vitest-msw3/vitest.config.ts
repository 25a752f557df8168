import { defineConfig } from 'vitest/config';

// Vitest loads the files of the package, and not Node, as it does for a package that is linked or partly mocked.
export default defineConfig({ test: { server: { deps: { inline: ['tracking-client'] } } } });

import { defineConfig } from 'vitest/config';

// As for a package that is linked or mocked in parts: vitest loads its files by itself, and not Node.
export default defineConfig({ test: { server: { deps: { inline: ['tracking-client'] } } } });

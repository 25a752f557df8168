import { defineConfig } from 'vitest/config';

// The fetch of happy-dom keeps to the same-origin policy, and the service is never on the page's own origin.
const environmentOptions = { happyDOM: { settings: { fetch: { disableSameOriginPolicy: true } } } };

const projects = ['jsdom', 'happy-dom'].map((environment) => ({
  test: { name: environment, environment, environmentOptions },
}));

export default defineConfig({ test: { projects } });

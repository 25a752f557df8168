// Deno loads the CommonJS build for an `import()` in a CommonJS file. This ES module loads the other build on every runtime.
export * from 'tracking-client';

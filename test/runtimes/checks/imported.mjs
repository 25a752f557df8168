// Deno takes the CommonJS side for an `import()` that stands in CommonJS; this is the other one on every runtime.
export * from 'tracking-client';

// Files share one process. If a file imports `undici` before anything calls the global `fetch`, this import decides how `fetch` sends
// and parses from then on. So let Node set up its own `fetch` first.
await fetch('data:,');

export {};

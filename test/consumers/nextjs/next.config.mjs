/** The app stands in a folder of its own; Next.js would look for one above it. */
export default { turbopack: { root: import.meta.dirname } };

/** Names this folder as the root, because Next.js would otherwise take a folder above it. */
export default { turbopack: { root: import.meta.dirname } };

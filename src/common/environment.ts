/** Reads an environment variable. Where Deno denies access to it, it counts as not set. */
export function readEnvironment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    return undefined;
  }
}

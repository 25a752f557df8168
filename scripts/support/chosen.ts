/** What the command line names, or everything when it names nothing. */
export function chosen(all: readonly string[], named: readonly string[]): readonly string[] {
  const unknown = named.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Error(`Expected some of ${all.join(', ')}, got ${unknown}`);
  return named.length > 0 ? all.filter((name) => named.includes(name)) : all;
}

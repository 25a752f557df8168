/** The least number of letters to add, drop or change that makes one word of the other (Levenshtein). */
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...one].entries()) {
    const current = [row + 1];
    for (const [column, otherLetter] of [...other].entries()) {
      const changed = (above[column] ?? 0) + (letter === otherLetter ? 0 : 1);
      current.push(Math.min(changed, (above[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    above = current;
  }
  return above.at(-1) ?? 0;
}

/** The name that was most likely meant; undefined when none is near: another case, a beginning, or a slip of the keys. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const lower = given.toLowerCase();
  const isBeginning = (one: string, other: string) => one.length >= 3 && other.startsWith(one);
  const near = names.flatMap((name) => {
    const known = name.toLowerCase();
    if (known === lower) return { name, slips: 0 };
    if (isBeginning(lower, known) || isBeginning(known, lower)) return { name, slips: 1 };
    // A word of the same length as another has little in common with it by chance.
    const mostSlips = Math.max(1, Math.floor(Math.min(known.length, lower.length) / 3));
    const slips = Math.abs(known.length - lower.length) > mostSlips ? Infinity : distance(lower, known);
    return slips <= mostSlips ? { name, slips } : [];
  });
  return near.sort((one, other) => one.slips - other.slips)[0]?.name;
}

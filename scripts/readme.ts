// Writes the parts of README.md that come from the sources: the endpoints, the options, the figures. With `--check` it
// writes nothing, and fails when a part is stale.
import { complaintAbout, staleParts, writeParts } from './readme/parts.ts';

const readme = new URL('../README.md', import.meta.url);

if (process.argv.includes('--check')) {
  const complaint = complaintAbout(readme);
  if (complaint !== undefined) console.error(complaint);
  process.exitCode = complaint === undefined ? 0 : 1;
} else {
  const stale = staleParts(readme);
  writeParts(readme, stale);
  console.log(
    stale.length === 0 ? 'README.md is up to date.' : `Wrote ${stale.map(({ name }) => name).join(', ')}.`,
  );
}

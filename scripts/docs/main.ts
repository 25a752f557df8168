// Writes the API reference to docs/api. With `--check` it writes nothing. Either way it fails, and says why, when the
// comment of something that users can import says too little.
import { createReference, PACKAGE } from './reference.ts';

const FOLDER = 'docs/api';

const { complaints, write } = await createReference(PACKAGE);
if (complaints.length === 0 && !process.argv.includes('--check')) {
  await write(FOLDER);
  console.log(`The API reference is in ${FOLDER}; start with index.html`);
}
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;

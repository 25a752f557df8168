/** Runs checks one after the other, prints each, and ends with their number; a failed one sets the exit code. */
async function runChecks(checks, start = (check) => check()) {
  const entries = Object.entries(checks);
  for (const [name, check] of entries) {
    try {
      await start(check);
      console.log(`ok ${name}`);
    } catch (error) {
      console.error(`FAILED ${name}`, error);
      process.exitCode = 1;
    }
  }
  console.log(entries.length === 1 ? '1 check' : `${entries.length} checks`);
}

module.exports = { runChecks };

import manifest from '../../package.json' with { type: 'json' };

/** `package.json` gets its `repository` only when the package is published. */
const REPOSITORY: unknown = 'repository' in manifest ? manifest.repository : undefined;

/** Writes how to install the package: from npm, or from a clone while it is not published. */
export function installSteps(isPublished: boolean): string {
  if (isPublished) return '```sh\nnpm install tracking-client\n```';
  return `The package is not on npm yet. Pack it in your clone, and install the file in your app:

\`\`\`sh
${packAndInstall()}
\`\`\``;
}

/** Writes how to install a newer version, and where to ask if there is such a place. */
export function upgradeSteps(isPublished: boolean, repository = REPOSITORY): string {
  if (!isPublished) {
    return `The package is not on npm yet. Pull the new version into your clone, and install it as before:

\`\`\`sh
git pull # in the clone
${packAndInstall()}
\`\`\``;
  }
  const address = findAddress(repository);
  return `\`\`\`sh
npm install tracking-client@latest
\`\`\`

The project lives at <${address}>. Ask questions and report bugs at <${address}/issues>.`;
}

/** Writes where to report a vulnerability. */
export function reportSteps(isPublished: boolean, repository = REPOSITORY): string {
  return isPublished
    ? `Do not report a vulnerability in a public issue. Report it at <${findAddress(repository)}/security/advisories/new>.`
    : 'The project has no public address yet. Report a vulnerability to the person who gave you the package, and to nobody else.';
}

function packAndInstall(): string {
  const tarball = `${manifest.name}-${manifest.version}.tgz`;
  return `npm ci && npm pack # in the clone; writes ${tarball}
npm install ../tracking-client/${tarball} # in your app, with the path of your clone`;
}

/** Finds the address of the repository on GitHub in the forms of the field that npm accepts: a text, or an object with a URL. */
function findAddress(repository: unknown): string {
  const [, path] =
    /\bgithub(?:\.com\/|:)([\w-]+\/[\w.-]+?)(?:\.git)?["}]*$/.exec(JSON.stringify(repository) ?? '') ?? [];
  if (path === undefined)
    throw new Error('Expected `repository` in package.json to name a repository on GitHub');
  return `https://github.com/${path}`;
}

import manifest from '../../package.json' with { type: 'json' };

/** Writes how to install the package: from npm, or from a clone while it is not published. */
export function installSteps(isPublished: boolean): string {
  if (isPublished) return '```sh\nnpm install tracking-client\n```';
  const tarball = `${manifest.name}-${manifest.version}.tgz`;
  return `The package is not on npm yet. Pack it in your clone, and install the file in your app:

\`\`\`sh
npm ci && npm pack # in the clone; writes ${tarball}
npm install ../tracking-client/${tarball} # in your app, with the path of your clone
\`\`\``;
}

import { type Ran, run } from './run.ts';

interface InstallOptions {
  /** What to install; by default what the folder's `package.json` names. */
  readonly packages?: readonly string[];
  /** Folder of the Node that npm shall run on. */
  readonly binFolder?: string | undefined;
}

/**
 * Installs npm packages into a folder that has a `package.json`. Install scripts are not run: npm may deny them by its own
 * default, so nothing here may depend on them.
 */
export function install(folder: string, { packages = [], binFolder }: InstallOptions = {}): Promise<Ran> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  return run('npm', ['install', ...flags, ...packages], { cwd: folder, binFolder });
}

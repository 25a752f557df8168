/** Whether the package is on npm. README.md, SECURITY.md and docs/versions.md follow it; a release needs `true`. */
export const IS_PUBLISHED: boolean = false;

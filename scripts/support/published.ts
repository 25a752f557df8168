/** Whether the package is on npm. The section "Install" of README.md follows it; a release needs `true`. */
export const IS_PUBLISHED: boolean = false;

const LOOPBACK_HOST = /^(localhost|.*\.localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/;

/** True for an `http:` URL of another machine, to which the key would be sent unencrypted (docs/service.md 1.7). */
export function isUnencrypted(text: string): boolean {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  return url?.protocol === 'http:' && !LOOPBACK_HOST.test(url.hostname);
}

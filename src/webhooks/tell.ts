/** Tells an observer. One that fails, at once or later, must not cost an event, an answer or the process. */
export function tell<Given extends unknown[]>(
  observer: ((...given: Given) => unknown) | undefined,
  ...given: Given
): void {
  void (async () => observer?.(...given))().catch(() => {});
}

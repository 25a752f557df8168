import { onTestFinished } from 'vitest';

/** A list for breaches of the contract, wherever a test meets them; the test fails at its end unless it is empty. */
export function collectBreaches(): string[] {
  const breaches: string[] = [];
  onTestFinished(() => {
    if (breaches.length > 0)
      throw new Error(`The contract is broken ${breaches.length} times: ${breaches.join('; ')}`);
  });
  return breaches;
}

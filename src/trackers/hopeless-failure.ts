import {
  AuthenticationError,
  NoActiveSubscriptionError,
  PermissionDeniedError,
  QuotaExceededError,
} from '../api-errors.ts';

/** True for failures that every later request would meet too: the key, its rights, the plan or its quota. */
export function isHopeless(error: unknown): boolean {
  return (
    error instanceof AuthenticationError ||
    error instanceof PermissionDeniedError ||
    error instanceof QuotaExceededError ||
    error instanceof NoActiveSubscriptionError
  );
}

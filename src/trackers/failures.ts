import {
  AuthenticationError,
  NoActiveSubscriptionError,
  NotFoundError,
  PermissionDeniedError,
  QuotaExceededError,
  RequestValidationError,
} from '../errors.ts';

/** True for failures that every later request would meet too: the key, its rights, the plan or its quota. */
export function isAccountError(error: unknown): boolean {
  return (
    error instanceof AuthenticationError ||
    error instanceof PermissionDeniedError ||
    error instanceof QuotaExceededError ||
    error instanceof NoActiveSubscriptionError
  );
}

/** True when the next poll can only fail the same way. A 404 without a code comes from a gateway, not from the service. */
export function isPermanent(error: unknown): boolean {
  return (
    error instanceof RequestValidationError || (error instanceof NotFoundError && error.code !== undefined)
  );
}

import { expectTypeOf, test } from 'vitest';
import {
  ApiError,
  type ApiErrorItem,
  type EndpointName,
  type ErrorCode,
  isTrackingError,
  type KnownErrorCode,
  RequestValidationError,
  type ResultsNotReadyError,
  TimeoutError,
  type Tracker,
  type TrackingError,
  type ValidationIssue,
} from '../../src/index.ts';

const caught: unknown = undefined;

test('isTrackingError → narrows to TrackingError', () => {
  if (isTrackingError(caught)) expectTypeOf(caught).toEqualTypeOf<TrackingError>();
  if (isTrackingError(caught, 'tracker_not_found')) {
    expectTypeOf(caught).toExtend<TrackingError>();
    expectTypeOf(caught.code).toEqualTypeOf<'tracker_not_found'>();
  }
});

test('isTrackingError with a code → narrows to the errors with that code', () => {
  if (isTrackingError(caught, 'quota_limit_reached')) {
    expectTypeOf(caught).toExtend<ApiError>();
    expectTypeOf(caught.status).toEqualTypeOf<number>();
  }
  if (isTrackingError(caught, 'validation_error')) {
    expectTypeOf(caught).toExtend<ApiError | RequestValidationError>();
    // @ts-expect-error -- nothing was sent when it is a RequestValidationError
    void caught.status;
  }
  const code: string = 'tracker_conflict';
  if (isTrackingError(caught, code)) expectTypeOf(caught.code).toEqualTypeOf<string>();
});

test('the facts of a call → optional, but an ApiError always has method, path and attempts', () => {
  if (isTrackingError(caught)) {
    expectTypeOf(caught.callId).toEqualTypeOf<string | undefined>();
    expectTypeOf(caught.endpoint).toEqualTypeOf<EndpointName | 'request' | undefined>();
    expectTypeOf(caught.method).toEqualTypeOf<string | undefined>();
    expectTypeOf(caught.path).toEqualTypeOf<string | undefined>();
    expectTypeOf(caught.attempts).toEqualTypeOf<number | undefined>();
  }
  if (caught instanceof ApiError) {
    expectTypeOf(caught.callId).toEqualTypeOf<string | undefined>();
    expectTypeOf(caught.method).toEqualTypeOf<string>();
    expectTypeOf(caught.attempts).toEqualTypeOf<number>();
  }
});

test('ResultsNotReadyError → may have a tracker', () => {
  expectTypeOf<ResultsNotReadyError['tracker']>().toEqualTypeOf<Tracker | undefined>();
});

test('instanceof → narrows to the class', () => {
  if (caught instanceof ApiError) {
    expectTypeOf(caught.status).toEqualTypeOf<number>();
    expectTypeOf(caught.code).toEqualTypeOf<ErrorCode | undefined>();
    expectTypeOf(caught.errors).toEqualTypeOf<readonly ApiErrorItem[]>();
    expectTypeOf(caught.headers).toEqualTypeOf<Headers>();
    expectTypeOf(caught.body).toEqualTypeOf<unknown>();
    expectTypeOf(caught.retryAfterMs).toEqualTypeOf<number | undefined>();
  }
  if (caught instanceof TimeoutError) expectTypeOf(caught.phase).toExtend<string>();
  if (caught instanceof RequestValidationError) {
    expectTypeOf(caught.issues).toEqualTypeOf<readonly ValidationIssue[]>();
  }
});

test('error codes → known codes are completed, unknown codes are legal', () => {
  expectTypeOf<'tracker_conflict'>().toExtend<ErrorCode>();
  expectTypeOf<'a_code_added_later'>().toExtend<ErrorCode>();
  expectTypeOf<ErrorCode>().not.toEqualTypeOf<string>();
});

test('a misspelt error code → does not compile', () => {
  // @ts-expect-error -- `quota_limit`
  isTrackingError(caught, 'quota_limit');
  // @ts-expect-error -- `quota_limit`
  isTrackingError<KnownErrorCode>(caught, 'quota_limit');
  const either = caught as 'quota_limit' | 'quota_limit_reached'; // Only its type matters.
  // @ts-expect-error -- one of the two is misspelt
  isTrackingError(caught, either);
});

test('a code that the service added later → compiles as a value of type string or ErrorCode', () => {
  const text: string = 'a_code_added_later';
  if (isTrackingError(caught, text)) expectTypeOf(caught.code).toEqualTypeOf<string>();
  isTrackingError(caught, 'a_code_added_later' as string);
  const code = caught as ErrorCode; // Only its type matters.
  if (isTrackingError(caught, code)) expectTypeOf(caught.code).toEqualTypeOf<ErrorCode>();
  const known = caught as KnownErrorCode; // Only its type matters.
  if (isTrackingError(caught, known)) expectTypeOf(caught.code).toEqualTypeOf<KnownErrorCode>();
});

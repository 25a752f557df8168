/** A program that uses a limiter and then has no more work; its argument names the final state of the limiter. */
import { TokenBucketLimiter } from '../../../src/limiter/token-bucket.ts';

const limiter = new TokenBucketLimiter();
const options = {
  bucket: { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: 'couriers.list' },
  priority: 'interactive',
} as const;

const permit = await limiter.acquire(options);
permit.send();
if (process.argv[2] === 'paused') permit.noteResponse({ status: 429, retryAfterMs: 3_600_000 });
if (process.argv[2] === 'waiting') {
  permit.noteResponse({ status: 200 });
  // Not awaited: only the limiter can keep the process alive until the call is granted.
  void limiter.acquire(options).then(() => console.log('granted'));
}
console.log('end of program');

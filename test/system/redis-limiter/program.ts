/** A program that uses a shared limiter once, closes its connection and then has nothing more to do. */
import { Redis } from 'ioredis';
import { RedisLimiter } from '../../../src/redis/index.ts';

const [url = '', keyPrefix = ''] = process.argv.slice(2);
const redis = new Redis(url);
const limiter = new RedisLimiter({ redis, keyPrefix });
const bucket = { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: 'couriers.list' };
const permit = await limiter.acquire({ bucket, priority: 'interactive' });
permit.send();
permit.noteResponse({ status: 200 });
await redis.quit();
console.log('end of program');

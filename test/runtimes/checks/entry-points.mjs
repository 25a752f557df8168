import assert from 'node:assert/strict';
import { inboxTableSql, PostgresDedupeStore } from 'tracking-client/postgres';
import { RedisDedupeStore } from 'tracking-client/redis';

export const entryPointChecks = {
  'the Redis store → sends the SHA-1 of its script, and reads the reply': async () => {
    const sent = [];
    const redis = {
      eval: async () => assert.fail('the script is known'),
      evalSha: async (sha1, { keys }) => {
        sent.push({ sha1, keys });
        return [0];
      },
    };
    const store = new RedisDedupeStore({ redis, keyPrefix: 'smoke:' });
    await store.claim(['key'], { token: 'token', leaseMs: 1_000 });
    assert.match(sent[0].sha1, /^[0-9a-f]{40}$/);
    assert.match(sent[0].keys[0], /^smoke:/);
  },

  'the PostgreSQL store → creates its table': async () => {
    const statements = [];
    const query = async (text) => {
      statements.push(text);
      return { rows: [] };
    };
    await new PostgresDedupeStore({ pool: { query } }).createTable();
    assert.ok(statements.join('\n').includes('tracking_inbox'));
    assert.ok(inboxTableSql().includes('CREATE TABLE'));
  },
};

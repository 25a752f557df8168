import { type FleetCase, type FleetRun, runFleetCase } from '../../../bench/fleet/run.ts';
import { startEnforcingServer } from '../../../bench/limiter/enforcing-server.ts';

const FOUR = { name: 'four processes', mode: 'sliding', processes: 4, calls: 80 } as const;

/** Lets four processes share one limit of 10 requests per second, on a service that enforces it. */
export async function runFour(redisUrl: string, each: Partial<FleetCase> = {}): Promise<FleetRun> {
  const asked: FleetCase = { ...FOUR, contenders: ['RedisLimiter'], ...each };
  const [only] = await runFleetCase(asked, redisUrl, startEnforcingServer);
  if (!only) throw new Error('Expected one run, got none');
  return only;
}

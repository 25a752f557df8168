import { type FleetCase, type FleetRun, runFleetCase } from '../../../bench/fleet/run.ts';
import { startEnforcingServer } from '../../../bench/limiter/enforcing-server.ts';

const FOUR = { name: 'four processes', mode: 'sliding', processes: 4, calls: 80 } as const;

/** Lets four processes share one limit of 10 requests per second, on a service that enforces it. */
export async function runFour(redisUrl: string, overrides: Partial<FleetCase> = {}): Promise<FleetRun> {
  const fleetCase: FleetCase = { ...FOUR, contenders: ['RedisLimiter'], ...overrides };
  const [only] = await runFleetCase(fleetCase, redisUrl, startEnforcingServer);
  if (!only) throw new Error('Expected one run, got none');
  return only;
}

import * as z from 'zod';
import type { TrackerInputs } from '../bulk/create-many.ts';
import { checkOptions } from '../common/check-options.ts';
import { quoteValue } from '../common/messages.ts';
import type { OptionShape } from '../common/option-schemas.ts';
import { isJsonObject } from '../common/parsing.ts';
import { checkIterable, PullStream, SourceReader } from '../common/streams.ts';
import { CALL_SHAPE } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import type { Courier } from '../schemas/courier.ts';
import type { TrackerInput } from '../schemas/tracker.ts';
import { type CourierList, foldText } from './courier-list.ts';

/** Options of `couriers.check` and `couriers.checkMany`. */
export interface CheckCouriersOptions {
  /** A signal that aborts the call. The call then rejects with the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Why a courier of a creation request may find nothing (docs/service.md 3.15). */
export interface CourierProblem {
  /** The field of the creation request that is missing or has a useless value. */
  readonly field: string;
  /** The courier code, as it stands in the creation request. */
  readonly courierCode: string;
  /**
   * `missing`: the courier needs the field. `not_sendable`: the courier needs the number of an account, for which a creation request
   * has no field. `deprecated`, `unknown`: the service ignores the code.
   */
  readonly problem: 'missing' | 'deprecated' | 'unknown' | 'not_sendable';
  /** The problem in a sentence. */
  readonly message: string;
}

/** The result of `couriers.checkMany` for one input. */
export interface CourierCheck {
  /** Position of the input, from 0. */
  readonly index: number;
  /** The input itself. */
  readonly input: TrackerInput;
  /** Empty if nothing is wrong. */
  readonly problems: readonly CourierProblem[];
}

const checkCouriersOptions = z.strictObject({
  signal: CALL_SHAPE.signal,
} satisfies OptionShape<CheckCouriersOptions>);

/** Reads the codes of an input. It may be of any type: values that `create` refuses have no problem here. */
function readCourierCodes(input: unknown): string[] {
  const codes: unknown = isJsonObject(input) ? input['courierCode'] : undefined;
  return [codes].flat().filter((code): code is string => typeof code === 'string' && code.trim() !== '');
}

/** Older lists of couriers have this field instead of `requiredFields`. */
const POST_CODE_FLAG = 'is_destination_postcode_required';

function readRequiredFields(courier: Courier): Set<string> {
  const fields = new Set<string>();
  // The client keeps a field of another type as it came.
  const required: unknown = courier.requiredFields;
  for (const field of [required].flat()) if (typeof field === 'string') fields.add(field);
  if (Reflect.get(courier, POST_CODE_FLAG) === true) fields.add('destinationPostCode');
  return fields;
}

/** Null and a blank text count as missing, because empty columns of databases and files have them. */
function isMissing(input: TrackerInput, field: string): boolean {
  const value: unknown = Reflect.get(input, field);
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '');
}

function findProblems(
  input: TrackerInput,
  courierCode: string,
  courier: Courier | undefined,
): CourierProblem[] {
  const name = quoteValue(courierCode);
  const ignored = { field: 'courierCode', courierCode };
  if (courier === undefined) {
    const message = `The service has no courier ${name}, and ignores the code`;
    return [{ ...ignored, problem: 'unknown', message }];
  }
  if (courier.isDeprecated === true) {
    const message = `The courier code ${name} is deprecated, and the service ignores it`;
    return [{ ...ignored, problem: 'deprecated', message }];
  }
  return [...readRequiredFields(courier)].flatMap((field): CourierProblem[] => {
    if (field === 'courierAccount') {
      const message = `The courier ${name} needs the number of an account, for which a creation request has no field`;
      return [{ field, courierCode, problem: 'not_sendable', message }];
    }
    if (!isMissing(input, field)) return [];
    const message = `The courier ${name} needs \`${field}\`, and may find nothing without it`;
    return [{ field, courierCode, problem: 'missing', message }];
  });
}

async function checkOne(
  config: Config,
  list: CourierList,
  input: TrackerInput,
  signal: AbortSignal | undefined,
): Promise<CourierProblem[]> {
  const codes = readCourierCodes(input);
  if (codes.length === 0) return [];
  const { byCode } = await list.read(config, signal);
  return codes.flatMap((code) => findProblems(input, code, byCode.get(foldText(code))?.courier));
}

/** Checks one creation request; see `couriers.check`. */
export async function checkCouriers(
  config: Config,
  list: CourierList,
  input: TrackerInput,
  options: CheckCouriersOptions,
): Promise<CourierProblem[]> {
  const { signal } = checkOptions(checkCouriersOptions, options, undefined, config);
  return await checkOne(config, list, input, signal);
}

/** The stream of `couriers.checkMany`. */
export class CourierChecks extends PullStream<CourierCheck> {
  readonly #config: Config;
  readonly #list: CourierList;
  readonly #inputs: TrackerInputs;

  /** @internal */
  constructor(config: Config, list: CourierList, inputs: TrackerInputs, options: CheckCouriersOptions) {
    checkIterable('inputs', inputs);
    const { signal } = checkOptions(checkCouriersOptions, options, undefined, config);
    super(signal);
    this.#config = config;
    this.#list = list;
    this.#inputs = inputs;
  }

  protected override async *produce(): AsyncGenerator<CourierCheck, void, undefined> {
    const source = new SourceReader(this.#inputs);
    try {
      for (let index = 0; ; index += 1) {
        const { done, value: input } = await source.next(this.endSignal);
        if (done) return;
        yield { index, input, problems: await checkOne(this.#config, this.#list, input, this.endSignal) };
      }
    } finally {
      source.close();
    }
  }
}

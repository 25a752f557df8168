import type { TrackerInput } from '../../src/index.ts';

const WINDOW_MS = 1000;
const LIMIT = 3;

/**
 * A bulk endpoint that counts like the service (a sliding second, 3 requests) and remembers no tracker: the fake keeps
 * every tracker it creates, and a million of them would hide what the client itself costs.
 */
export class BulkService {
  readonly #latencyMs: number;
  readonly #accepted: number[] = [];
  requests = 0;
  refused = 0;
  /** Inputs that were answered for. */
  answered = 0;

  constructor(latencyMs: number) {
    this.#latencyMs = latencyMs;
  }

  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    this.requests += 1;
    const request = new Request(input, init);
    const isAllowed = this.#count();
    await new Promise<void>((resolve) => {
      setTimeout(resolve, this.#latencyMs);
    });
    if (!isAllowed) return new Response('too many', { status: 429, headers: { 'retry-after': '1' } });
    // The client sends an array of creation requests as JSON text.
    const inputs = (await request.json()) as TrackerInput[];
    this.answered += inputs.length;
    const data = inputs.map((inputData) => ({
      itemStatus: 'created',
      inputData,
      tracker: trackerOf(inputData),
      errors: null,
    }));
    const summary = {
      totalInputs: inputs.length,
      totalCreated: inputs.length,
      totalExisting: 0,
      totalErrors: 0,
    };
    return Response.json({ status: 'success', summary, data, error: null }, { status: 201 });
  };

  #count(): boolean {
    const now = performance.now();
    while ((this.#accepted[0] ?? now) <= now - WINDOW_MS) this.#accepted.shift();
    if (this.#accepted.length >= LIMIT) {
      this.refused += 1;
      return false;
    }
    this.#accepted.push(now);
    return true;
  }
}

function trackerOf({ trackingNumber, clientTrackerId }: TrackerInput) {
  return {
    trackerId: `tracker-${trackingNumber}`,
    trackingNumber: trackingNumber.toUpperCase(),
    clientTrackerId: clientTrackerId ?? null,
    shipmentReference: null,
    isTracked: true,
    isSubscribed: true,
    createdAt: '2026-03-01T11:09:00.000Z',
  };
}

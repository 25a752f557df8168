// test/route-by-key.ts
import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';

export function routeByKey(fakes: ReadonlyMap<string, FakeTrackingService>) {
  const stranger = createFakeTrackingService({ apiKeys: ['nobody-has-this-key'] }); // responds with 401
  return (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const key = request.headers.get('authorization')?.replace('Bearer ', '') ?? '';
    return (fakes.get(key) ?? stranger).fetch(request);
  };
}

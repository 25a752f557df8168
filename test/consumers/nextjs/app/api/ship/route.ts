import { tracking } from '../../../lib/tracking';

/** Starts tracking when the shop ships a parcel. */
export async function POST(request: Request): Promise<Response> {
  const { orderId, trackingNumber } = await request.json();
  await tracking().trackers.create({ trackingNumber, clientTrackerId: orderId });
  return new Response(null, { status: 204 });
}

import { ship } from '../../../lib/orders';

/** Starts tracking when the shop ships a parcel. */
export async function POST(request: Request): Promise<Response> {
  const { orderId, trackingNumber } = await request.json();
  await ship(orderId, trackingNumber);
  return new Response(null, { status: 204 });
}

import { ship } from '../../../lib/orders';

/** What the shop does when a parcel leaves it. */
export async function POST(request: Request): Promise<Response> {
  const { orderId, trackingNumber } = await request.json();
  await ship(orderId, trackingNumber);
  return new Response(null, { status: 204 });
}

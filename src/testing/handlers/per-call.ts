import { toAlpha2 } from '../service/countries.ts';
import { canAnswer, canAnswerAtOnce, publicCourier } from '../service/couriers.ts';
import { ServiceError } from '../service/replies.ts';
import { parseJson, validatedSearch } from '../service/validate.ts';
import { perCallView } from '../service/views.ts';
import { courierList } from '../trackers/tracker-state.ts';
import { type Handler, success } from './handler.ts';

/** `POST /tracking/search`: no tracker, no webhook, one call of the quota (service.md 1). */
export const search: Handler = ({ bodyText }, world) => {
  const input = validatedSearch(parseJson(bodyText), world.now());
  if (world.searches >= world.options.searchQuota)
    throw new ServiceError(403, { code: 'quota_limit_reached', message: 'The per-call quota is used up.' });
  world.searches += 1;
  const places = {
    originCountryCode: toAlpha2(input.originCountryCode ?? '') ?? null,
    destinationCountryCode: toAlpha2(input.destinationCountryCode ?? '') ?? null,
  };
  const hints = {
    courierCodes: courierList(input.courierCode),
    destinationPostCode: input.destinationPostCode ?? null,
    destinationCountryCode: places.destinationCountryCode,
  };
  const shipment = world.askedShipment(input.trackingNumber);
  const asked = hints.courierCodes.length > 0 ? hints.courierCodes : shipment.courierCodes;
  const isAnswered = canAnswer(world.couriers, hints) && canAnswerAtOnce(world.couriers, asked);
  const events = isAnswered ? shipment.events : [];
  return success(201, { trackings: [perCallView(shipment, places, events)] });
};

/** `GET /couriers`, on every plan: service.md 1 names it for none, and a client needs it for either. */
export const listCouriers: Handler = (_call, world) =>
  success(200, { couriers: world.couriers.map(publicCourier) });

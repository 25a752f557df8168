const { TrackingClient } = require('tracking-client');

const client = new TrackingClient();

exports.ship = async (trackingNumber) => (await client.trackers.create({ trackingNumber })).trackerId;
exports.status = async (trackerId) => {
  const { shipment } = await client.trackers.results(trackerId);
  return shipment?.statusMilestone;
};

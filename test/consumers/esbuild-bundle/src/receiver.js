import { parseWebhook } from 'tracking-client/webhooks';

console.log(parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}').messages.length);

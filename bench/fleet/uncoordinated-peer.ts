/** A process of a fleet whose limiter does not know of the other processes. */
import { openClient, servePeer } from '../../test/support/fleet/serve-peer.ts';

servePeer((task) => openClient(task));

/** The sender goes on trying for six days (public contract); whatever must outlast it is kept for seven. In milliseconds. */
export const OUTLASTS_SENDER_MS = 7 * 24 * 60 * 60 * 1000;

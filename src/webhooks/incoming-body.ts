import type { IncomingMessage } from 'node:http';

/**
 * The body of a Node request as a web stream. Unlike `Readable.toWeb` it leaves the request alone until someone reads,
 * and never closes the connection when the reader stops: the answer still has to get out.
 */
export class IncomingBody {
  readonly #incoming: IncomingMessage;
  #stopListening: (() => void) | undefined;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  /** The body, read from the connection only as fast as it is read from the stream. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        pull: (controller) => {
          this.#stopListening ??= this.#listen(controller);
          this.#incoming.resume();
        },
        // A reader that leaves the loop has closed the stream; nothing may be put into it any more.
        cancel: () => this.discard(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Lets the rest of a body that nobody reads flow by, so that the connection can serve its next request. */
  discard(): void {
    if (this.#stopListening === undefined) return;
    this.#stopListening();
    this.#incoming.resume();
  }

  /** Returns a function that stops it. */
  #listen(controller: ReadableStreamDefaultController<Uint8Array>): () => void {
    const incoming = this.#incoming;
    const take = (chunk: Uint8Array) => {
      incoming.pause();
      controller.enqueue(chunk);
    };
    const end = () => controller.close();
    const breakOff = () => {
      if (!incoming.readableEnded)
        controller.error(new Error('The connection closed before the body was complete'));
    };
    incoming.on('data', take).once('end', end).once('close', breakOff);
    // Only so that it is not uncaught; `close` follows and tells the reader.
    incoming.on('error', () => {});
    // Closed before anyone read: none of the events above will come.
    if (incoming.destroyed) breakOff();
    return () => {
      incoming.off('data', take).off('end', end).off('close', breakOff);
      // Whoever still waits for more must not wait for ever; does nothing to a stream that is closed.
      controller.error(new Error('The request was answered before its body was read'));
    };
  }
}

import type { IncomingMessage } from 'node:http';

/**
 * The body of a Node request as a web stream. Unlike `Readable.toWeb` it leaves the request alone until someone reads,
 * and never closes the connection when the reader stops: the answer still has to get out.
 */
export class IncomingBody {
  readonly #incoming: IncomingMessage;
  #onData: ((chunk: Uint8Array) => void) | undefined;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  /** The body, read from the connection only as fast as it is read from the stream. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        pull: (controller) => {
          if (this.#onData === undefined) this.#listen(controller);
          this.#incoming.resume();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Lets the rest of a body that nobody reads flow by, so that the connection can serve its next request. */
  discard(): void {
    if (this.#onData === undefined) return;
    this.#incoming.off('data', this.#onData);
    this.#incoming.resume();
  }

  #listen(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const incoming = this.#incoming;
    this.#onData = (chunk) => {
      incoming.pause();
      controller.enqueue(chunk);
    };
    const breakOff = () => {
      if (!incoming.readableEnded) {
        controller.error(new Error('The connection closed before the body was complete'));
      }
    };
    incoming.on('data', this.#onData);
    incoming.once('end', () => controller.close());
    incoming.once('error', (error) => controller.error(error));
    incoming.once('close', breakOff);
    // Closed before anyone read: none of the events above will come.
    if (incoming.destroyed) breakOff();
  }
}

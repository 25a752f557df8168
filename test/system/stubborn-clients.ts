import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const SECRET = 'whsec-1';

let count = 0;

function request(): string {
  count += 1;
  const body = JSON.stringify({ trackerId: 't1', events: [{ eventId: String(count) }] });
  const headers = `Authorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /webhooks HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`;
}

/** Sends five requests at once, and another one after each response. */
function pipeline(socket: Socket, build: () => string): void {
  socket.on('data', (text) => {
    for (const _ of `${text}`.matchAll(/HTTP\/1\.1 \d/g)) socket.write(build());
  });
  for (let count = 0; count < 5; count += 1) socket.write(build());
}

/** Clients that never close their connection. */
export const CLIENTS: Readonly<Record<string, (socket: Socket) => void>> = {
  'sends its next webhook after each response': (socket) => {
    socket.on('data', () => void socket.write(request())).write(request());
  },
  'sends webhooks without waiting for responses': (socket) => pipeline(socket, request),
  'sends HEAD without waiting for responses': (socket) => {
    const text = 'HEAD /webhooks HTTP/1.1\r\nHost: localhost\r\n\r\n';
    pipeline(socket, () => text);
  },
  'sends TRACE after each response': (socket) => {
    const text = 'TRACE /webhooks HTTP/1.1\r\nHost: localhost\r\n\r\n';
    socket.on('data', () => void socket.write(text)).write(text);
  },
  'sends a body that never ends': (socket) => {
    const headers = `Authorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked`;
    socket.write(`POST /webhooks HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n1\r\n{\r\n`);
    const timer = setInterval(() => socket.write('1\r\n \r\n'), 20);
    socket.on('data', () => {}).on('close', () => clearInterval(timer));
  },
  'sends the beginning of a header': (socket) => void socket.write('POST /webhooks HTTP/1.1\r\nHost: loc'),
  'sends nothing': () => {},
};

/** Opens a connection to a server on loopback. The server may reset it. */
export async function openConnection(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

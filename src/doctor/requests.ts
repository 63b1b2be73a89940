/** Sends the HTTP requests of `gatehouse doctor`, each on a new connection, to the issuer or to a given address. */
import type { IncomingMessage } from 'node:http';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { openAnswer, wholeAnswer } from '../base/outgoing-requests.ts';

export interface DoctorRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** If present, the request is a POST with this form. */
  readonly form?: Readonly<Record<string, string>>;
}

/** The service itself answers within two seconds. */
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export type DoctorAnswer = Awaited<ReturnType<typeof doctorAnswer>>;
export type DoctorRequests = ReturnType<typeof createRequests>;
export type Send = DoctorRequests['send'];

/** @param parts.address where to connect; by default, the issuer. The `Host` header always names the issuer */
export function createRequests(parts: { issuer: string; address?: string | undefined; signal: AbortSignal }) {
  const { issuer, address = issuer, signal: interruption } = parts;
  const { host, hostname: servername } = new URL(issuer);

  const ask = ({ path, form, headers = {} }: DoctorRequest, signal: AbortSignal): Promise<IncomingMessage> =>
    openAnswer(address, {
      method: form ? 'POST' : 'GET',
      body: form && new URLSearchParams(form),
      headers: { host, 'user-agent': 'Gatehouse doctor', ...headers },
      signal,
      connect: { path, agent: false, servername },
    });

  return {
    send: async (request: DoctorRequest): Promise<DoctorAnswer> =>
      doctorAnswer(await ask(request, AbortSignal.any([interruption, AbortSignal.timeout(TIMEOUT_MS)]))),

    /** Returns the open stream, or a complete answer if its status is not 200. */
    async openStream(request: DoctorRequest, signal: AbortSignal): Promise<IncomingMessage | DoctorAnswer> {
      const message = await ask(request, signal);
      return message.statusCode === 200 ? message.setEncoding('utf8') : doctorAnswer(message);
    },
  };
}

async function doctorAnswer(message: IncomingMessage) {
  const { socket } = message;
  // Read the addresses before the body, because a closed connection has none.
  const ends = { from: plainAddress(socket.localAddress), to: plainAddress(socket.remoteAddress) };
  // The certificate of a closed connection is null, although Node's types do not say so.
  const certificate: PeerCertificate | null = socket instanceof TLSSocket ? socket.getPeerCertificate() : null;
  const end = certificate?.valid_to;
  const whole = await wholeAnswer(message, MAX_ANSWER_BYTES);
  const { status, headers } = whole;
  const text = await whole.text();
  const body: Readonly<Record<string, unknown>> = Object(await new Response(text).json().catch(() => undefined));
  const id = headers.get('x-request-id') ?? undefined;
  return {
    status,
    headers,
    text,
    /** The addresses of the connection: `from` is the doctor's end, `to` the other end. */
    ...ends,
    /** The JSON object in the body; empty if the body is no JSON object. */
    body,
    /** The request id of the service; undefined if something in front of it, such as a proxy, has answered. */
    requestId: id?.startsWith('req_') ? id : undefined,
    /** When the certificate of the server expires; undefined without TLS. */
    certificateEnds: end ? new Date(end) : undefined,
  };
}

/** Removes `::ffff:`, which a dual-stack socket writes before an IPv4 address. */
const plainAddress = (address = ''): string => address.replace(/^::ffff:(?=\d+\.)/, '');

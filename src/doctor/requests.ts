/** Sends the doctor's requests, each on a new connection, to the issuer or to another address. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { openAnswer, wholeAnswer } from '../base/outgoing-requests.ts';

export interface DoctorRequest {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
}

export interface DoctorAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON object of the body, or an empty one. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Undefined if something in front of the service answered instead. */
  readonly requestId: string | undefined;
  /** The two ends of the connection. */
  readonly from: string;
  readonly to: string;
  /** When the certificate expires; undefined without TLS. */
  readonly certificateEnds: Date | undefined;
}

export type Send = (request: DoctorRequest) => Promise<DoctorAnswer>;

/** The body of an answer that is a stream, in chunks as they arrive. */
export interface DoctorStream {
  readonly chunks: AsyncIterable<string>;
  close(): void;
}

/** Requests a stream; returns a complete answer if its status is not 200. */
export type OpenStream = (request: DoctorRequest, signal: AbortSignal) => Promise<DoctorStream | DoctorAnswer>;

export interface DoctorRequests {
  readonly send: Send;
  readonly openStream: OpenStream;
}

/** Longer than the two seconds in which the service itself always answers. */
const TIMEOUT_MS = 10_000;
/** Several times as long as the longest page. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * @param address to connect to; the issuer's if absent. The `Host` is always the issuer's
 * @param from the local address to connect from
 */
export function createRequests({
  issuer,
  address = issuer,
  from,
  signal: interruption,
}: {
  issuer: string;
  address?: string | undefined;
  from?: string | undefined;
  signal: AbortSignal;
}): DoctorRequests {
  const { host, hostname: servername } = new URL(issuer);

  const ask = (
    { path, form, headers = {}, method = form ? 'POST' : 'GET' }: DoctorRequest,
    signal: AbortSignal,
  ): Promise<IncomingMessage> =>
    openAnswer(address, {
      method,
      body: form && new URLSearchParams(form),
      headers: { host, 'user-agent': 'Gatehouse doctor', ...headers },
      signal,
      connect: {
        path,
        agent: false,
        servername,
        ...(from !== undefined && { localAddress: from, family: 4 }),
      },
    });

  return {
    async send(request) {
      const signal = AbortSignal.any([interruption, AbortSignal.timeout(TIMEOUT_MS)]);
      return doctorAnswer(await ask(request, signal));
    },

    async openStream(request, signal) {
      const message = await ask(request, signal);
      if (message.statusCode !== 200) return doctorAnswer(message);
      message.setEncoding('utf8');
      return { chunks: message, close: () => message.destroy() };
    },
  };
}

async function doctorAnswer(message: IncomingMessage): Promise<DoctorAnswer> {
  // Read these first: once the connection is closed, its addresses are unknown.
  const ends = endsOf(message);
  const whole = await wholeAnswer(message, MAX_ANSWER_BYTES);
  const { status, headers } = whole;
  const text = await whole.text();
  const id = headers.get('x-request-id') ?? undefined;
  const requestId = id?.startsWith('req_') ? id : undefined;
  return { status, headers, text, body: jsonObject(text), requestId, ...ends };
}

function endsOf({ socket }: IncomingMessage): Pick<DoctorAnswer, 'from' | 'to' | 'certificateEnds'> {
  const certificate = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
  return {
    from: plainAddress(socket.localAddress ?? ''),
    to: plainAddress(socket.remoteAddress ?? ''),
    certificateEnds: certificate?.valid_to ? new Date(certificate.valid_to) : undefined,
  };
}

function jsonObject(answered: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(answered);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Removes the `::ffff:` that a dual-stack socket writes before an IPv4 address. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/, '');

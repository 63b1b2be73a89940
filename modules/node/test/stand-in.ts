/** A listener in place of the service, which counts requests and sends the answers of a test. */
import { createServer, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect } from 'chai';
import { atEndOfFile } from '../../../test/support/end-of-run.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { TestClient } from '../../../test/support/oauth.ts';
import {
  type Caller,
  createIntrospector,
  type Introspector,
  type IntrospectorOptions,
} from '../src/resource-server.ts';

/** The token that tests send to a stand-in. */
export const TOKEN = `gate_at_${'a'.repeat(43)}`;
/** The credentials that an API sends to a stand-in. */
export const API: TestClient = { id: 'gate_ci_api', secret: 'gate_cs_api', redirectUri: '' };

/** Creates an introspector, which is closed after the file. */
export function introspectorOf(
  { id: clientId, secret: clientSecret = '' }: TestClient,
  options: Partial<IntrospectorOptions> & Pick<IntrospectorOptions, 'issuer'>,
): Introspector {
  // A long timeout, because the machine may be busy, and few tests are about the timeout.
  const usual = { clientId, clientSecret, timeoutMs: 20_000 };
  const introspector = createIntrospector({ ...usual, ...options });
  atEndOfFile(introspector.close);
  return introspector;
}

export const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** Identifies until the answer is cached. @param pass lets the seconds pass in which no answer is cached */
export const cachedCaller = (api: Introspector, token: string, pass: () => void): Promise<Caller> =>
  eventually(async () => {
    pass();
    await api.identify(bearer(token));
    const { caller, decidedBy } = await api.identify(bearer(token));
    expect(decidedBy).to.equal('memory');
    return caller as Caller;
  });

export interface StandIn {
  readonly origin: string;
  readonly introspectionEndpoint: string;
  /** The forms of all requests so far. */
  readonly asked: readonly URLSearchParams[];
  /** The number of connections opened so far. */
  readonly connections: number;
}

export type Respond = (answer: ServerResponse, form: string, asked: IncomingMessage) => unknown;

/** Starts a stand-in, which is closed after the file. */
export async function startStandIn(respond: Respond): Promise<StandIn> {
  const asked: URLSearchParams[] = [];
  const sockets = new Set<Socket>();
  const url = await listen(async (incoming, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const form = Buffer.concat(chunks).toString();
    asked.push(new URLSearchParams(form));
    await respond(answer, form, incoming);
  }, sockets);
  return {
    origin: url.origin,
    introspectionEndpoint: `${url.origin}/oauth/introspect`,
    asked,
    get connections() {
      return sockets.size;
    },
  };
}

/**
 * Starts a stand-in that answers introspections like the service.
 *
 * @param answerOf returns members of the answer, or undefined for an inactive token
 * @param onStream responds to a request for the change stream
 */
export async function startService(
  answerOf: (token: string) => object | undefined,
  onStream: Respond = (answer) => answer.end(),
): Promise<StandIn> {
  const service = await startStandIn((answer, form, asked) => {
    if (asked.method === 'GET') return onStream(answer, form, asked);
    const found = answerOf(new URLSearchParams(form).get('token') ?? '');
    return answering({ active: found !== undefined, iss: service.origin, ...found })(answer, form, asked);
  });
  return service;
}

/** Starts a server, which is closed after the file. @param sockets receives its connections. */
export async function listen(handler: RequestListener, sockets = new Set<Socket>()): Promise<URL> {
  const server = createServer(handler);
  // A long timeout, so that a slow test finds its connection still open.
  server.keepAliveTimeout = 120_000;
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEndOfFile(() => {
    server.close();
    server.closeAllConnections();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** Forwards requests to the service, and its answers back. `arrived` may delay an answer. */
export const passOnTo =
  (issuer: string, arrived: () => Promise<void> | void = () => {}): Respond =>
  (answer, form, { headers, method, url }) =>
    new Promise<void>((resolve, reject) => {
      const onward = request(new URL(url ?? '', issuer), { method, headers }, async (response) => {
        await arrived();
        answer.writeHead(response.statusCode ?? 0, response.headers);
        response.pipe(answer).on('finish', resolve);
      });
      onward.on('error', reject);
      onward.end(form);
    });

/** Answers every request with this JSON. */
export const answering =
  (body: unknown, headers: Record<string, string> = {}): Respond =>
  (answer) =>
    answer.setHeaders(new Map(Object.entries(headers))).end(JSON.stringify(body));

/** A listener in the place of the service: it counts what it is asked, and answers as it is told. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import {
  createIntrospector,
  type Introspector,
  type IntrospectorOptions,
} from '../../src/resource-server/resource-server.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import type { TestClient } from '../support/oauth.ts';

/** What a stand-in is asked about. */
export const TOKEN = `gate_at_${'a'.repeat(43)}`;
/** What a stand-in is asked with. */
export const API: TestClient = { id: 'gate_ci_api', secret: 'gate_cs_api', redirectUri: '' };

/** An introspector, which is closed after the file. */
export function introspectorOf(
  { id: clientId, secret: clientSecret = '' }: TestClient,
  options: Partial<IntrospectorOptions> & Pick<IntrospectorOptions, 'issuer'>,
): Introspector {
  // The machine of the tests may be busy, and few of them are about time.
  const usual = { clientId, clientSecret, timeoutMs: 20_000 };
  const introspector = createIntrospector({ ...usual, ...options });
  atEndOfFile(introspector.close);
  return introspector;
}

export const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

export interface StandIn {
  readonly origin: string;
  readonly introspectionEndpoint: string;
  /** The forms it was sent so far. */
  readonly asked: readonly URLSearchParams[];
  /** Connections that were opened so far. */
  readonly connections: number;
}

export type Respond = (answer: ServerResponse, form: string, asked: IncomingMessage) => unknown;

/** It is closed after the file. */
export async function startStandIn(respond: Respond): Promise<StandIn> {
  const asked: URLSearchParams[] = [];
  const sockets = new Set<Socket>();
  const server = createServer(async (incoming, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const form = Buffer.concat(chunks).toString();
    asked.push(new URLSearchParams(form));
    await respond(answer, form, incoming);
  });
  // Whoever asks again finds the connection as it left it, however long that took.
  server.keepAliveTimeout = 120_000;
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEndOfFile(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    introspectionEndpoint: `${origin}/oauth/introspect`,
    asked,
    get connections() {
      return sockets.size;
    },
  };
}

/** Passes everything on to the service, and its answer back. `arrived` may hold the answer. */
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

/** Answers every question with this JSON. */
export const answering =
  (body: unknown, headers: Record<string, string> = {}): Respond =>
  (answer) =>
    answer.setHeaders(new Map(Object.entries(headers))).end(JSON.stringify(body));

/** A GraphQL API of warehouses and their stock, protected by the resource server module. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { subscribe } from 'graphql';
import { createHandler } from 'graphql-http/lib/use/http';
import { createHandler as createStreamHandler } from 'graphql-sse/lib/use/http';
import { type Caller, callerContext, type Introspector } from '../../modules/node/src/resource-server.ts';
import { apiPage, type Call, createCalls } from './calls.ts';
import { listen } from './listening.ts';
import { createStock, SCHEMA } from './stock.ts';

export interface WarehouseApi {
  /** The address for GraphQL requests. */
  readonly url: URL;
  close(): Promise<void>;
}

export const apiUrlAt = (port: number): string => `http://127.0.0.1:${port}/graphql`;
const STYLESHEET = '/sandbox.css';
const HEADERS = {
  'content-security-policy': "default-src 'none'; style-src 'self'; base-uri 'none'",
  'cache-control': 'no-store',
};

export async function startWarehouseApi(parts: {
  readonly introspector: Introspector;
  readonly port?: number;
}): Promise<WarehouseApi> {
  const { introspector, port = 0 } = parts;
  const calls = createCalls(introspector);
  const rootValue = createStock();
  const style = await readFile(new URL('sandbox.css', import.meta.url), 'utf8');

  const graphql = createHandler({
    schema: SCHEMA,
    rootValue,
    context: (request, { query }) =>
      callerContext(
        calls.recording((call) => {
          call.operation = inOneLine(query);
        }),
      )(request),
  });
  const graphqlStream = createSubscriptions(calls, rootValue);

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const [path] = (request.url ?? '').split('?');
    const isStream = request.headers.accept === 'text/event-stream';
    // The client has disconnected: no answer is needed.
    const drop = (): void => void response.destroy();
    if (path === '/graphql') (isStream ? graphqlStream : graphql)(request, response).catch(drop);
    else if (path === '/') send(response, 'text/html', apiPage(calls.list, STYLESHEET));
    else if (path === STYLESHEET) send(response, 'text/css', style);
    else response.writeHead(404).end();
  }
  const listening = await listen(answer, { host: '127.0.0.1', port });
  return {
    url: new URL(apiUrlAt(listening.port)),
    close: listening.close,
  };
}

/** GraphQL over server-sent events: a subscription ends with the access of its caller. */
function createSubscriptions(calls: ReturnType<typeof createCalls>, rootValue: object) {
  const known = new WeakMap<object, { readonly caller: Caller; readonly call: Call }>();
  return createStreamHandler<{ caller: Caller }>({
    schema: SCHEMA,

    async authenticate(request) {
      let call: Call | undefined;
      const found = await callerContext(calls.recording((noted) => (call = noted)))(request as never);
      if ('caller' in found) known.set(request.raw, { caller: found.caller, call: call as Call });
      return 'caller' in found ? undefined : found;
    },

    context(request, { query }) {
      const { caller, call } = known.get(request.raw) ?? {};
      if (!caller || !call) throw new Error('no caller was identified');
      call.operation = inOneLine(query);
      call.subscription = { events: 0 };
      return { caller };
    },

    subscribe: (args) => subscribe({ ...args, rootValue }),

    onNext(_, request) {
      const { subscription } = known.get(request.raw)?.call ?? {};
      if (subscription) subscription.events += 1;
    },

    onComplete({ caller }, request) {
      const { subscription } = known.get(request.raw)?.call ?? {};
      const because = caller.signal?.aborted ? 'access' : 'left';
      if (subscription) subscription.end = { at: new Date(), because };
    },
  });
}

const inOneLine = (query: unknown): string => String(query).replace(/\s+/g, ' ').slice(0, 100);

function send(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, { ...HEADERS, 'content-type': `${type}; charset=utf-8` });
  response.end(text);
}

/** "Connect your warehouse": a partner app that shows each of its requests with the answer. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import Koa, { type Context } from 'koa';
import Router from 'koa-router';
import getRawBody from 'raw-body';
import { clockTime } from './html.ts';
import { listen } from './listening.ts';
import { createPartner, type PartnerConnection, type PartnerRegistration } from './partner-connection.ts';
import { partnerPage } from './partner-page.ts';

export interface PartnerApp {
  readonly origin: string;
  close(): Promise<void>;
}

/** Differs from the service's cookies, because browsers share cookies between the ports of a host. */
const COOKIE = 'stock_planner';
/** Maximum number of connections; a further connection removes the oldest one. */
const MAX_BROWSERS = 100;
const STYLESHEET = '/sandbox.css';
const SCRIPT = '/watching.js';
const CONTENT_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'";

/** Listens at the origin of the redirect URI. */
export async function startPartnerApp(parts: {
  readonly registration: PartnerRegistration;
  readonly apiUrl: URL;
}): Promise<PartnerApp> {
  const { registration, apiUrl } = parts;
  const { issuer, redirectUri } = registration;
  const { origin, hostname, port, pathname } = new URL(redirectUri);
  const connect = await createPartner(registration, apiUrl);
  const connections = new Map<string, PartnerConnection>();
  const read = (name: string) => readFile(new URL(name, import.meta.url), 'utf8');
  const [style, script] = await Promise.all([read('sandbox.css'), read('watching.js')]);

  /** Returns the connection of this browser, so that a callback link from another browser cannot connect it. */
  function connectionOf(ctx: Context): PartnerConnection {
    const known = connections.get(ctx.cookies.get(COOKIE) ?? '');
    if (known) return known;
    const id = randomUUID();
    const connection = connect();
    const [oldest] = connections.keys();
    if (oldest !== undefined && connections.size >= MAX_BROWSERS) {
      connections.get(oldest)?.close();
      connections.delete(oldest);
    }
    connections.set(id, connection);
    // Lax: browsers send it after a redirect from the service, but not with another site's POST.
    ctx.cookies.set(COOKIE, id, { sameSite: 'lax' });
    return connection;
  }

  const router = new Router();
  router.get('/', (ctx) => {
    ctx.type = 'html';
    ctx.body = partnerPage(connectionOf(ctx), {
      stylesheet: STYLESHEET,
      script: SCRIPT,
      issuer,
      apiUrl: apiUrl.href,
    });
  });
  router.get(STYLESHEET, (ctx) => Object.assign(ctx, { type: 'css', body: style }));
  router.get(SCRIPT, (ctx) => Object.assign(ctx, { type: 'js', body: script }));
  router.get('/connect', async (ctx) => {
    ctx.redirect((await connectionOf(ctx).begin()).href);
  });
  router.get(pathname, async (ctx) => {
    await connectionOf(ctx).finish(new URL(ctx.url, origin));
    goBack(ctx);
  });
  for (const [path, step] of [
    ['/stock', 'showStock'],
    ['/refresh', 'refresh'],
    ['/retry', 'retry'],
    ['/revoke', 'revoke'],
    ['/watch', 'watchStock'],
  ] as const) {
    router.post(path, async (ctx) => {
      await connectionOf(ctx)[step]();
      goBack(ctx);
    });
  }
  router.get('/watching', (ctx) => {
    ctx.respond = false;
    sendAsItComes(connectionOf(ctx), ctx);
  });
  router.post('/adjust', async (ctx) => {
    const form = new URLSearchParams(await getRawBody(ctx.req, { limit: 10_000, encoding: 'utf-8' }));
    const change = { warehouse: form.get('warehouse') ?? '', article: form.get('article') ?? '' };
    await connectionOf(ctx).adjustStock({ ...change, by: Number(form.get('by')) });
    goBack(ctx);
  });

  const app = new Koa();
  app.use(async (ctx, next) => {
    ctx.set('Content-Security-Policy', CONTENT_POLICY);
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  app.use(router.routes());
  const listening = await listen(app.callback(), { host: hostname, port: Number(port) });
  return {
    origin,
    async close() {
      for (const connection of connections.values()) connection.close();
      await listening.close();
    },
  };
}

/** Sends further messages of the subscription as server-sent events, which a page can resume. */
function sendAsItComes({ watch }: PartnerConnection, { req, res, query }: Context): void {
  let sent = Number(req.headers['last-event-id'] ?? query.after) || 0;
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (): void => {
    for (const { at, text } of watch?.lines.slice(sent) ?? []) {
      sent += 1;
      const line = JSON.stringify({ at: clockTime(at), text });
      res.write(`id: ${sent}\ndata: ${line}\n\n`);
    }
    if (!watch || watch.isOver) res.end('event: over\ndata:\n\n');
  };
  if (watch) res.once('close', watch.onChange(send));
  send();
}

/** Redirects to a GET (RFC 9110 §15.4.4), so that reloading the page repeats nothing. */
function goBack(ctx: Context): void {
  ctx.status = 303;
  ctx.redirect('/');
}

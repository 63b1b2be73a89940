/** The operators' listener, which is not the public one: health, metrics, reload. */
import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { Logger } from 'pino';
import { ConfigurationProblems } from '../config/problems.ts';
import type { Reload } from '../config/reload.ts';
import { exactRoutes } from './exact-routes.ts';
import type { MetricsText } from './metrics/metrics.ts';
import {
  clockRefusal,
  type Readiness,
  reasonNotReady,
  type Store,
  type StoreState,
} from './readiness.ts';
import { requestLog } from './request-log.ts';
import { refuseRepeatedHeaders, shownHost } from './requests.ts';

export interface OperatorsHostParts {
  readonly log: Logger;
  /** `server.operators_host`, the one name beside localhost that it goes by. */
  readonly operatorsHost: string;
  readonly readiness: Readiness;
  readonly metrics: () => Promise<MetricsText>;
  readonly reload: () => Promise<Reload>;
  /** Of which an order to reload must bring one; undefined where none is needed. */
  readonly reloadCredentials: () => readonly string[] | undefined;
}

export function createOperatorsHost(parts: OperatorsHostParts): Koa {
  const app = new Koa();
  const log = parts.log.child({ listener: 'operators' });
  app.use(requestLog({ log, quietPaths: ['/healthz', '/readyz', '/metrics'] }));
  app.use(refuseRepeatedHeaders);
  const requireOwnName = requireOperatorsName(parts.operatorsHost);
  app.use(
    exactRoutes([], {
      // The process answers: restarting it would not help.
      '/healthz': { GET: [(ctx) => Object.assign(ctx, { body: { status: 'ok' } })] },
      '/readyz': { GET: [answerReady(parts.readiness)] },
      '/metrics': {
        GET: [
          requireOwnName,
          async function answerMetrics(ctx: Context) {
            const { contentType, text } = await parts.metrics();
            ctx.type = contentType;
            ctx.body = text;
          },
        ],
      },
      '/reload': {
        POST: [
          requireOwnName,
          refuseBrowsers,
          requireCredential(parts.reloadCredentials),
          reloadSettings(parts.reload),
        ],
      },
    }),
  );
  return app;
}

/**
 * A page whose name its owner lets resolve to this listener (DNS rebinding) is of the same origin,
 * and may read what it likes. Only a name can do that, so whoever asks by address is answered.
 */
function requireOperatorsName(operatorsHost: string): Middleware {
  return function ownName(ctx, next) {
    const { hostname = '' } = URL.parse(`http://${ctx.req.headers.host}`) ?? {};
    const name = hostname.replace(/^\[|\]$/g, '');
    if (!isIP(name) && name !== 'localhost' && name !== operatorsHost.toLowerCase()) {
      const message =
        'ask by address, as localhost, or by the name in server.operators_host, ' +
        `not as ${shownHost(ctx.req.headers.host)}`;
      ctx.throw(421, message, { expose: true });
    }
    return next();
  };
}

/** Every store keeps what it is given, and the process stays: send it requests. Why not, if not. */
const answerReady = (readiness: Readiness) =>
  async function ready(ctx: Context): Promise<void> {
    const states = await readiness.stores();
    const { database, tokens } = states;
    const reason = reasonNotReady(states);
    if (reason !== undefined || readiness.isDraining) ctx.status = 503;
    const otherwise = reason === undefined ? 'ready' : 'not ready';
    ctx.body = {
      status: readiness.isDraining ? 'draining' : otherwise,
      database: inOneWord('database', database),
      tokens: inOneWord('tokens', tokens),
      ...(reason !== undefined && { reason }),
    };
  };

function inOneWord(store: Store, state: StoreState): string {
  if (state.isAway) return 'away';
  return clockRefusal(store, state) === undefined ? 'ok' : 'clock differs';
}

/** A page in an operator's browser could post here; a program says nothing of where it comes from. */
async function refuseBrowsers(ctx: Context, next: Next): Promise<void> {
  if (ctx.get('origin') || ctx.get('sec-fetch-site')) {
    ctx.throw(403, 'not from a browser', { expose: true });
  }
  await next();
}

/** @param accepted each is good; undefined where only this machine gets here, and needs none. */
function requireCredential(accepted: () => readonly string[] | undefined): Middleware {
  return async function credential(ctx, next) {
    const presented = Buffer.from(ctx.get('authorization'));
    const isGood = accepted()?.some((value) => {
      const expected = Buffer.from(`Bearer ${value}`);
      return expected.length === presented.length && timingSafeEqual(expected, presented);
    });
    if (isGood !== false) return next();
    ctx.status = 401;
    ctx.set('WWW-Authenticate', 'Bearer');
    ctx.body = 'ask with `operator reload`, or send SIGHUP\n';
  };
}

/** Where it fails the service runs on as it did: problems of the file are the answer (422). */
function reloadSettings(reload: () => Promise<Reload>): Middleware {
  return async function answerReload(ctx) {
    try {
      const { changed, needsRestart } = await reload();
      ctx.body = { changed, needs_restart: needsRestart };
    } catch (error) {
      if (error instanceof ConfigurationProblems) {
        ctx.status = 422;
        ctx.body = { code: error.code, problems: error.problems };
      } else {
        // Its text may name what only the log may know.
        ctx.status = 500;
        ctx.body = { code: 'not_reloaded', message: 'the log says why' };
      }
    }
  };
}

/** The operators' listener, which is not the public one: health, metrics, reload. */
import { isIP } from 'node:net';
import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Reload } from '../config/reload.ts';
import { exactRoutes } from './exact-routes.ts';
import { healthChecks } from './health.ts';
import type { MetricsText } from './metrics/metrics.ts';
import type { Readiness } from './readiness.ts';
import { refuseBrowsers, reloadSettings, requireCredential } from './reload.ts';
import { refuseRepeatedHeaders } from './repeated-headers.ts';
import { requestLog } from './request-log.ts';
import { shownHost } from './requests.ts';

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
  app.use(requestLog({ log: parts.log.child({ listener: 'operators' }) }));
  app.use(refuseRepeatedHeaders);
  const health = healthChecks(parts.readiness);
  const requireOwnName = requireOperatorsName(parts.operatorsHost);
  app.use(
    exactRoutes([], {
      '/healthz': { GET: [health.alive] },
      '/readyz': { GET: [health.ready] },
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

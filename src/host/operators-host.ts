/** The operators' listener, which is separate from the public one. It answers health checks, metrics and reloads. */
import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { Logger } from 'pino';
import type { OperatedBy } from '../base/operated-by.ts';
import { holdsSecret } from '../base/random-id.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { isDecodable } from '../config/urls.ts';
import { hostIn } from './broken-requests.ts';
import { type ExactRoutes, exactRoutes, listRoutes } from './exact-routes.ts';
import { logKoaErrors } from './failures.ts';
import type { Host } from './host.ts';
import type { Metrics } from './metrics/metrics.ts';
import { clockRefusal, type Readiness, reasonNotReady, type Store, type StoreState } from './readiness.ts';
import { checkRepeatedHeaders, requireChecked, shownHost } from './request-checks.ts';
import { requestLog } from './request-log.ts';
import {
  answerAudit,
  answerChanges,
  answerLeaks,
  type EndLeaked,
  hideUnconfigured,
  type PushChanges,
  type ReadAudit,
  requireSender,
  type SenderParts,
} from './sender-paths.ts';

/** The headers of every answer, even of answers that the listener sends itself. */
export const OPERATORS_HEADERS = { 'X-Content-Type-Options': 'nosniff' };

export function createOperatorsHost(parts: {
  readonly log: Logger;
  /** `server.operators_host`. Besides localhost, this is the only accepted name. */
  readonly operatorsHost: string;
  readonly readiness: Readiness;
  readonly metrics: Metrics['text'];
  /** `preview` changes nothing. Like `everywhere`, it throws ConfigurationProblems if the settings have problems. */
  readonly reload: {
    readonly preview: () => Promise<object>;
    readonly everywhere: (by?: OperatedBy) => Promise<object>;
  };
  /** Returns credentials, of which a reload request must contain one; undefined if no credential is needed. */
  readonly reloadCredentials: () => readonly string[] | undefined;
  /** Protects the paths that other systems call, each with its own secret. */
  readonly senders: SenderParts;
  readonly pushChanges: PushChanges;
  readonly endLeaked: EndLeaked;
  readonly readAudit: ReadAudit;
}): Host {
  const app = new Koa();
  const log = parts.log.child({ listener: 'operators' });
  logKoaErrors(app, log);
  app.use(requestLog({ log, quietPaths: ['/healthz', '/readyz', '/metrics', '/audit'] }));
  app.use((ctx, next) => {
    ctx.set(OPERATORS_HEADERS);
    return next();
  });
  app.use(requireChecked(checkRepeatedHeaders));
  const requireOwnName = requireOperatorsName(parts.operatorsHost);
  const mayReload = requireCredential(parts.reloadCredentials);
  const forReloads = [requireOwnName, refuseBrowsers, mayReload] as const;
  app.use(hideUnconfigured(parts.senders));
  const routes: ExactRoutes<void> = {
    // `/healthz` does not check the stores, because a restart of the process would not help them.
    '/healthz': { GET: [answerAlive] },
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
      GET: [...forReloads, answerReload(parts.reload.preview)],
      POST: [...forReloads, answerReload((ctx) => parts.reload.everywhere(operatorOf(ctx)))],
    },
    '/changes': {
      POST: [requireOwnName, refuseBrowsers, requireSender(parts.senders, 'changes'), answerChanges(parts.pushChanges)],
    },
    '/leaks': {
      POST: [requireOwnName, refuseBrowsers, requireSender(parts.senders, 'leaks'), answerLeaks(parts.endLeaked)],
    },
    '/audit': {
      GET: [requireOwnName, refuseBrowsers, requireSender(parts.senders, 'audit'), answerAudit(parts.readAudit)],
    },
  };
  const stepsOf = exactRoutes([], routes);
  app.use((ctx, next) => stepsOf(ctx)?.(ctx) ?? next());
  return { handle: app.callback(), routes: listRoutes(routes) };
}

/**
 * Prevents DNS rebinding: a site whose name resolves to this listener has the same origin, and could read everything.
 * An attack needs such a name, so requests by IP address are accepted.
 */
function requireOperatorsName(operatorsHost: string): Middleware {
  return function ownName(ctx, next) {
    const name = hostIn(ctx.req.headers.host) ?? '';
    if (!isIP(name.replace(/^\[|\]$/g, '')) && name !== 'localhost' && name !== operatorsHost.toLowerCase()) {
      const message =
        'use an address, localhost, or the name in server.operators_host as the host, not ' +
        `${shownHost(ctx.req.headers.host)}`;
      ctx.throw(421, message, { expose: true });
    }
    return next();
  };
}

function answerAlive(ctx: Context): void {
  ctx.body = { status: 'ok' };
}

/** Answers 503 with the reason if a store or a clock is unusable, or if the process is draining. */
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

/** Refuses browsers, since any page could post here: programs send neither `Origin` nor `Sec-Fetch-Site`. */
async function refuseBrowsers(ctx: Context, next: Next): Promise<void> {
  if (ctx.get('origin') || ctx.get('sec-fetch-site')) {
    ctx.throw(403, 'requests from browsers are refused', { expose: true });
  }
  await next();
}

/** @param accepted returns the valid credentials; undefined if none is needed, because only this machine can connect */
function requireCredential(accepted: () => readonly string[] | undefined): Middleware {
  return async function credential(ctx, next) {
    const presented = Buffer.from(ctx.get('authorization'));
    const isAccepted = accepted()?.some((value) => {
      const expected = Buffer.from(`Bearer ${value}`);
      return expected.length === presented.length && timingSafeEqual(expected, presented);
    });
    if (isAccepted !== false) return next();
    ctx.status = 401;
    ctx.set('WWW-Authenticate', 'Bearer');
    ctx.body = 'use `operator reload`, or send SIGHUP\n';
  };
}

/** Returns the named operator. The name is trusted, because the command runs on this machine or has the keys. */
function operatorOf(ctx: Context): OperatedBy | undefined {
  const named = (header: string) => decodedHeader(ctx.get(header));
  const [operator, reason] = [named('gatehouse-operator'), named('gatehouse-reason')];
  return operator === undefined ? undefined : { operator, ...(reason !== undefined && { reason }) };
}

/** Returns undefined for a text that the command never sends, such as an empty, invisible or long text, or a secret. */
function decodedHeader(value: string): string | undefined {
  const text = isDecodable(value) ? decodeURIComponent(value) : '';
  return /^\P{C}{1,500}$/u.test(text) && !holdsSecret(text) ? text : undefined;
}

/** If a reload fails, the settings stay unchanged, and the answer (422) lists the problems of the file. */
function answerReload(work: (ctx: Context) => Promise<object>): Middleware {
  return async function answerReload(ctx) {
    // Waiting for other nodes may take longer than the idle timeout of a connection.
    ctx.req.socket.setTimeout(0);
    try {
      ctx.body = await work(ctx);
    } catch (error) {
      if (error instanceof ConfigurationProblems) {
        ctx.status = 422;
        ctx.body = { code: error.code, problems: error.problems };
      } else {
        // The error's text may contain details that belong only in the log.
        ctx.status = 500;
        ctx.body = { code: 'not_reloaded', message: 'see the log for the cause' };
      }
    }
  };
}

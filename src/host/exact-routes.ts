/** Routes without parameters: found by path and method, their steps composed once and not per request. */
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import type { Route } from '../pages/routes.ts';

type Method = 'GET' | 'POST' | 'OPTIONS';

/** For each path the steps of each of its methods; GET answers HEAD as well. */
export type ExactRoutes = Readonly<
  Record<string, Readonly<Partial<Record<Method, readonly Middleware[]>>>>
>;

/**
 * Answers exactly these paths, character by character, and passes on every other request. A method
 * that a path does not have, or whose steps pass it on, is a 405 (RFC 9110 §15.5.6).
 *
 * @param before the steps that come first on all of them.
 */
export function exactRoutes(before: readonly Middleware[], routes: ExactRoutes): Middleware {
  const paths = new Map(
    Object.entries(routes).map(([path, methods]) => {
      const refuse = methodNotAllowed(Object.keys(methods));
      const composed = Object.entries(methods).map(
        ([method, steps]) => [method, compose([...before, ...steps, refuse])] as const,
      );
      const otherwise = compose([...before, refuse]);
      return [path, { methods: new Map<string, Middleware>(composed), otherwise }] as const;
    }),
  );
  return function exactRoute(ctx, next) {
    const route = paths.get(ctx.path);
    if (!route) return next();
    // For the log and the metrics; the router of the pages says it of its own routes.
    ctx.state.route = ctx.path;
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    return (route.methods.get(method) ?? route.otherwise)(ctx, next);
  };
}

/** One by one. */
export const listed = (routes: ExactRoutes): Route[] =>
  Object.entries(routes).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, steps]) => ({ method, path, steps })),
  );

function methodNotAllowed(methods: readonly string[]): Middleware {
  const allowed = methods
    .filter((method) => method !== 'OPTIONS')
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return function refuseMethod(ctx: Context): void {
    ctx.set('Allow', allowed.join(', '));
    ctx.throw(405, `use ${allowed.join(' or ')}`, { expose: true });
  };
}

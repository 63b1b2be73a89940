/** Routes without parameters: found by path and method, their steps composed only once. */
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import type { Route } from '../pages/routes.ts';

type Method = 'GET' | 'POST' | 'OPTIONS';

/** The steps for each method of each path; GET also answers HEAD. */
export type ExactRoutes = Readonly<
  Record<string, Readonly<Partial<Record<Method, readonly Middleware[]>>>>
>;

/**
 * Answers requests to exactly these paths and passes on all others. A method that a path does not
 * have, or whose steps all call `next`, gets a 405 (RFC 9110 §15.5.6).
 *
 * @param before the steps that run first on every path
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
    // The log and the metrics use `route`; for the pages, their router sets `_matchedRoute`.
    ctx.state.route = ctx.path;
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    return (route.methods.get(method) ?? route.otherwise)(ctx, next);
  };
}

export const listRoutes = (routes: ExactRoutes): Route[] =>
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

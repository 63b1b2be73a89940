/** Routes without parameters. They are found by path and method, and their steps are composed only once. */
import type { Context } from 'koa';
import type { Answer, Step } from '../base/answer.ts';
import type { Route } from '../pages/routes.ts';

/** The steps for each method of each path. GET also answers HEAD. */
export type ExactRoutes<Result = Answer> = Readonly<
  Record<string, Readonly<Partial<Record<'GET' | 'POST' | 'OPTIONS', readonly Step<Result>[]>>>>
>;

export type RunSteps<Result> = (ctx: Context) => Result | Promise<Result>;

/**
 * Finds the steps for the path and method of a request. Returns undefined for any other path. A method that a path does
 * not have, or whose steps all call `next`, gets a 405 (RFC 9110 §15.5.6).
 * @param before the steps that run first on every path
 */
export function exactRoutes<Result>(
  before: readonly Step<Result>[],
  routes: ExactRoutes<Result>,
): (ctx: Context) => RunSteps<Result> | undefined {
  const paths = new Map(
    Object.entries(routes).map(([path, methods]) => {
      const refuse = methodNotAllowed(Object.keys(methods));
      const composed = Object.entries(methods).map(
        ([method, steps]) => [method, compose([...before, ...steps], refuse)] as const,
      );
      const otherwise = compose(before, refuse);
      return [path, { methods: new Map(composed), otherwise }] as const;
    }),
  );
  return function findSteps(ctx) {
    const route = paths.get(ctx.path);
    if (!route) return undefined;
    // The log and the metrics read `route`. For pages, the router sets `_matchedRoute` instead.
    ctx.state.route = ctx.path;
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    return route.methods.get(method) ?? route.otherwise;
  };
}

/** Pass on the promise of a step unchanged, because another promise for each step would delay every request. */
const compose = <Result>(steps: readonly Step<Result>[], last: RunSteps<Result>): RunSteps<Result> =>
  steps.reduceRight<RunSteps<Result>>(
    (next, step) => (ctx) => step(ctx, () => Promise.resolve(next(ctx)) as Promise<Result>),
    last,
  );

export const listRoutes = <Result>(routes: ExactRoutes<Result>): Route[] =>
  Object.entries(routes).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, steps]) => ({ method, path, steps })),
  );

function methodNotAllowed(methods: readonly string[]): (ctx: Context) => never {
  const allowed = methods
    .filter((method) => method !== 'OPTIONS')
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return function refuseMethod(ctx): never {
    ctx.set('Allow', allowed.join(', '));
    return ctx.throw(405, `use ${allowed.join(' or ')}`, { expose: true });
  };
}

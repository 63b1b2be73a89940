/** The type of a route, and types that several pages use. */
import type { Context, Middleware } from 'koa';
import type { Text } from '../base/message.ts';

/** The host mounts all routes; `test/host/routes.test.ts` lists them, and has rules for those of the profile. */
export interface Route {
  /** A route for GET also answers HEAD. */
  readonly method: string;
  /** A router pattern such as `/profile/connections/:id`. If several patterns match, the first route answers. */
  readonly path: string;
  /** Each step is a function whose name says what it requires or does. */
  readonly steps: readonly Middleware[];
}

const answering =
  (method: 'GET' | 'POST') =>
  (path: string, ...steps: Middleware[]): Route => ({ method, path, steps });

export const get = answering('GET');
export const post = answering('POST');

export const SECURITY = '/profile/security';

/** Renders a form again with the typed values. A form that is only a button needs no `Redraw`. */
export interface Redraw {
  /** True if all users have this page, and its form has the same effect for each of them. */
  readonly isForEverybody: boolean;
  draw(ctx: Context, problem: Text): Promise<void>;
}

/** The GraphQL API for which tokens are issued. */
export interface ShownApi {
  readonly graphqlUrl: string;
  readonly exampleQuery: string;
}

export interface Lifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
}

/** The type with which a page declares its requests, and types that several pages share. */
import type { Context, Middleware } from 'koa';
import type { Message, Text } from '../base/message.ts';

/** Mounted by the host; `test/host/routes.test.ts` has their table, and rules for those of the profile. */
export interface Route {
  /** The HTTP method; a route for GET also answers HEAD. */
  readonly method: string;
  /** A router pattern like `/profile/connections/:id`. If several match, the first one answers. */
  readonly path: string;
  /** Run in order. Each step is a function that is named after what it requires or does. */
  readonly steps: readonly Middleware[];
}

const answering =
  (method: 'GET' | 'POST') =>
  (path: string, ...steps: Middleware[]): Route => ({ method, path, steps });

export const get = answering('GET');
export const post = answering('POST');

/** The security page, to which several pages redirect. */
export const SECURITY = '/profile/security';

/** Renders a form again with the submitted values. Needed only for forms with more than a button. */
export interface Redraw {
  /** True if all users have this page, and the form has the same effect for each of them. */
  readonly isForEverybody: boolean;
  draw(ctx: Context, problem: Text): Promise<void>;
}

/** The GraphQL API for which tokens are issued. */
export interface ShownApi {
  readonly graphqlUrl: string;
  /** The example query that the operator has configured. */
  readonly exampleQuery: string;
  readonly call: CallApi;
}

/** Sends the example query of the API with this access token. Never rejects. */
export type CallApi = (accessToken: string) => Promise<ApiAnswer>;

export type ApiAnswer =
  | {
      readonly status: number;
      readonly body: string;
      /** True if the body was longer than a page shows. */
      readonly isCut: boolean;
    }
  /** Why there is no answer: the end of a sentence. */
  | { readonly failure: Message };

/** The lifetimes from the settings in force. */
export interface Lifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
}

/** Posts a form to a path of this service over HTTP, as an external client would. */
export type PostForm = (
  path: string,
  form: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string }>;

/** How a page declares the requests it answers, and the types that several pages share. */
import type { Context, Middleware } from 'koa';

/** Mounted by the host; `test/host/routes.test.ts` holds the table of all of them. */
export interface Route {
  /** GET answers HEAD as well. */
  readonly method: string;
  /** As the router writes it: `/profile/connections/:id`. More than one fits? The first answers. */
  readonly path: string;
  /** In order, each named after what it requires or does. */
  readonly steps: readonly Middleware[];
}

const answering =
  (method: 'GET' | 'POST') =>
  (path: string, ...steps: Middleware[]): Route => ({ method, path, steps });

export const get = answering('GET');
export const post = answering('POST');

/** The page of how a user signs in, to which several pages lead back. */
export const SECURITY = '/profile/security';

/** How the page of a form is drawn with what was sent, where more was filled in than a button. */
export interface Redraw {
  /** Somebody else has this page too, and the form does the same there. */
  readonly isForEverybody: boolean;
  draw(ctx: Context, problem: string): Promise<void>;
}

/** The GraphQL API that the tokens are for. */
export interface ShownApi {
  readonly graphqlUrl: string;
  /** What the operator chose for everybody to begin with. */
  readonly exampleQuery: string;
  readonly call: CallApi;
}

/** Sends the example query of the API with this access token. Never rejects. */
export type CallApi = (accessToken: string) => Promise<ApiAnswer>;

export type ApiAnswer =
  | {
      readonly status: number;
      readonly body: string;
      /** It was longer than a page shows. */
      readonly isCut: boolean;
    }
  /** Why there is none, in words that follow a colon. */
  | { readonly failure: string };

/** Of the settings in force, in seconds. */
export interface Lifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
}

/** Posts a form to a path of this service over HTTP, as anybody would. */
export type PostForm = (
  path: string,
  form: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string }>;

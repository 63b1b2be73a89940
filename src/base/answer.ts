/** The answer of a route that programs call. The host writes the whole answer with one call, without Koa. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';

export interface Answer {
  /** The HTTP status; 200 by default. */
  readonly status?: number;
  /** Added to the headers of host/security-headers.ts; a header of the same name is replaced. */
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON; undefined is sent as an empty answer with status 204. */
  readonly body: object | string | Readable | undefined;
}

/** Runs the later steps of the route, and returns their answer. */
export type NextStep = () => Promise<Answer>;

/** A step of a route, which answers the request itself or returns the answer of `next`. */
export type Step<Result = Answer> = (ctx: Context, next: () => Promise<Result>) => Result | Promise<Result>;

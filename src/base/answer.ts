/** The answer of a route for programs, which the host writes with one call, without Koa. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';

export interface Answer {
  /** Default: 200. */
  readonly status?: number;
  /** Headers that are added to, or replace, the headers that all these answers have (host/security-headers.ts). */
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. Without a body, the status is 204. */
  readonly body: object | string | Readable | undefined;
}

/** Returns the answer of the steps that follow. */
export type NextStep = () => Promise<Answer>;

/** A step of a route: returns an answer of its own, or the answer of the next step. */
export type Step<Result = Answer> = (ctx: Context, next: () => Promise<Result>) => Result | Promise<Result>;

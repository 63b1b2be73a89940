/** `POST /reload` on the operators' listener: the settings file is read again, and what came of it. */
import { timingSafeEqual } from 'node:crypto';
import type { Context, Middleware, Next } from 'koa';
import { ConfigurationProblems } from '../config/problems.ts';
import type { Reload } from '../config/reload.ts';

/** A page in an operator's browser could post here; a program says nothing of where it comes from. */
export async function refuseBrowsers(ctx: Context, next: Next): Promise<void> {
  if (ctx.get('origin') || ctx.get('sec-fetch-site')) {
    ctx.throw(403, 'not from a browser', { expose: true });
  }
  await next();
}

/** @param accepted each is good; undefined where only this machine gets here, and needs none. */
export function requireCredential(accepted: () => readonly string[] | undefined): Middleware {
  return async function credential(ctx, next) {
    const presented = Buffer.from(ctx.get('authorization'));
    const isGood = accepted()?.some((value) => {
      const expected = Buffer.from(`Bearer ${value}`);
      return expected.length === presented.length && timingSafeEqual(expected, presented);
    });
    if (isGood !== false) return next();
    ctx.status = 401;
    ctx.set('WWW-Authenticate', 'Bearer');
    ctx.body = 'ask with `operator reload`, or send SIGHUP\n';
  };
}

/** Where it fails the service runs on as it did: problems of the file are the answer (422). */
export function reloadSettings(reload: () => Promise<Reload>): Middleware {
  return async function answerReload(ctx) {
    try {
      const { changed, needsRestart } = await reload();
      ctx.body = { changed, needs_restart: needsRestart };
    } catch (error) {
      if (error instanceof ConfigurationProblems) {
        ctx.status = 422;
        ctx.body = { code: error.code, problems: error.problems };
      } else {
        // Its text may name what only the log may know.
        ctx.status = 500;
        ctx.body = { code: 'not_reloaded', message: 'the log says why' };
      }
    }
  };
}

/** `POST /leaks`: ends the values that a scanner found in public. */
import type { Middleware } from 'koa';
import { Refusal } from '../base/refusal.ts';
import { bodyOf, refuse, senderName } from './sender-paths.ts';

/** Ends the values of the report, and returns the answer. @throws Refusal */
export type EndLeaked = (report: string, scanner: string) => Promise<object>;

const STATUSES: Readonly<Record<string, number>> = { too_many_values: 413, not_done: 503 };

/** Reads the whole body first, so that an interrupted request ends nothing. */
export const answerLeaks = (endLeaked: EndLeaked): Middleware =>
  async function leaks(ctx) {
    const body = await bodyOf(ctx, { maxBytes: 1024 * 1024, remedy: 'Send several requests.' });
    if (body === undefined) return;
    try {
      ctx.body = await endLeaked(body.toString(), senderName.get(ctx));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const status = STATUSES[error.code] ?? 400;
      if (status === 503) ctx.set('Retry-After', '5');
      refuse(ctx, status, error);
    }
  };

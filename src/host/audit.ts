/** `GET /audit`: the security log by cursor, for a system that collects it. */
import type { Middleware } from 'koa';
import { Refusal } from '../base/refusal.ts';
import { refuse } from './sender-paths.ts';

/** @param after a cursor or `start`. @throws Refusal if the cursor is not one of this log */
export type ReadAudit = (
  after: string,
  limit: number,
) => Promise<{ entries: readonly object[]; next: string; more: boolean }>;

export const answerAudit = (readAudit: ReadAudit): Middleware =>
  async function audit(ctx) {
    ctx.set('Cache-Control', 'no-store');
    const { after = 'start', limit = '100', ...others } = ctx.query;
    try {
      if (Object.keys(others).length > 0 || Array.isArray(after)) throw unknownParameter;
      if (!/^([1-9]\d{0,2}|1000)$/.test(String(limit))) throw limitInvalid;
      ctx.body = await readAudit(after, Number(limit));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(ctx, 400, error);
    }
  };

const unknownParameter = new Refusal(
  'parameter_invalid',
  'A parameter is unknown, or is there twice.',
  'Send `after` and `limit`, each at most once.',
);
const limitInvalid = new Refusal(
  'limit_invalid',
  'The limit is not a number of entries.',
  'Send a limit from 1 to 1000, or none.',
);

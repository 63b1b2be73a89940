/** `POST /changes`: applies lines of JSON from the system that manages the memberships. */
import type { Middleware } from 'koa';
import { Refusal } from '../base/refusal.ts';
import { bodyOf, refuse, senderName } from './sender-paths.ts';

/** Applies the lines, and returns an answer for each. @throws Refusal if no line was applied */
export type PushChanges = (
  body: Buffer,
  sender: string,
) => Promise<readonly { readonly line: number; readonly result: string }[]>;

/** Reads the whole body before it applies a line, so that an interrupted request changes nothing. */
export const answerChanges = (push: PushChanges): Middleware =>
  async function changes(ctx) {
    const body = await bodyOf(ctx, BODY);
    if (body === undefined) return;
    try {
      const answers = await push(body, senderName.get(ctx));
      const isDone = answers.every(({ result }) => result !== 'not_done');
      ctx.status = isDone ? 200 : 503;
      if (!isDone) ctx.set('Retry-After', '5');
      ctx.type = 'application/x-ndjson';
      ctx.body = answers.map((answer) => `${JSON.stringify(answer)}\n`).join('');
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(ctx, 413, error);
    }
  };

const BODY = {
  maxBytes: 1024 * 1024,
  remedy: 'Split the lines into several requests, in the same order.',
};

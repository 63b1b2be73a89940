/** `POST /changes`: applies lines of JSON from the system that keeps the memberships. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import { Refusal } from '../base/refusal.ts';
import { requestState } from '../base/request-state.ts';
import type { Sender } from '../config/senders.ts';

export interface ChangesParts {
  readonly senders: () => readonly Sender[];
  /** Applies the lines, and returns an answer for each. @throws Refusal if no line was applied */
  readonly push: (
    body: Buffer,
    sender: string,
  ) => Promise<readonly { readonly line: number; readonly result: string }[]>;
  /** Counts wrong secrets by network address. A correct secret is never refused. */
  readonly wrongSecrets: () => AttemptLimit;
}

export const CHANGES_PATH = '/changes';
const MAX_BYTES = 1024 * 1024;

const senderName = requestState<string>('requireSender');

/** Answers 404 while no sender is configured. */
export const hideChanges =
  ({ senders }: ChangesParts): Middleware =>
  (ctx, next) =>
    ctx.path === CHANGES_PATH && senders().length === 0 ? Promise.resolve() : next();

/** Route step: finds the sender by its secret. A wrong secret gets 401, or 429 after too many. */
export const requireSender = ({ senders, wrongSecrets }: ChangesParts): Middleware =>
  async function sender(ctx, next) {
    const presented = hashOf(ctx.get('authorization'));
    // Compare with all secrets, so that the response time does not reveal which secret matched.
    const [found] = senders().filter(({ secret }) =>
      timingSafeEqual(hashOf(`Bearer ${secret}`), presented),
    );
    if (found) {
      senderName.set(ctx, found.name);
      return next();
    }
    const over = await wrongSecrets().count(networkOf(ctx.ip));
    if (over) ctx.set('Retry-After', String(over.seconds));
    ctx.set('WWW-Authenticate', 'Bearer');
    refuse(ctx, over ? 429 : 401, WRONG_SECRET);
  };

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Reads the whole body before it applies a line: an interrupted request changes nothing. */
export const answerChanges = ({ push }: ChangesParts): Middleware =>
  async function changes(ctx) {
    const body = await bodyOf(ctx);
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

/** @returns undefined if the body is too large (then answers 413) or the connection was cut */
async function bodyOf(ctx: Context): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = ctx.request.length ?? 0;
  if (length <= MAX_BYTES) {
    length = 0;
    try {
      for await (const chunk of ctx.req.iterator({ destroyOnReturn: false })) {
        length += chunk.length;
        if (length > MAX_BYTES) break;
        chunks.push(chunk);
      }
    } catch {
      // The connection was cut: the caller gets no answer.
      ctx.status = 400;
      return undefined;
    }
    if (length <= MAX_BYTES) return Buffer.concat(chunks);
  }
  ctx.set('Connection', 'close');
  refuse(ctx, 413, TOO_LARGE);
  return undefined;
}

function refuse(ctx: Context, status: number, { code, message, remedy }: Refusal): void {
  ctx.status = status;
  ctx.body = { code, message, remedy };
}

const WRONG_SECRET = new Refusal(
  'wrong_secret',
  'The request does not contain the secret of a sender.',
  'Send the header Authorization: Bearer with a secret from GATEHOUSE_CHANGES_SECRETS.',
);
const TOO_LARGE = new Refusal(
  'body_too_large',
  `The body is larger than ${MAX_BYTES} bytes.`,
  'Split the lines into several requests, in the same order.',
);

/** The operators' listener: paths that senders call with a bearer secret. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import { Refusal } from '../base/refusal.ts';
import { requestState } from '../base/request-state.ts';
import { SENDER_VARIABLES, type SenderPath, type Senders } from '../config/senders.ts';

export interface SenderParts {
  readonly senders: () => Senders;
  /** Counts wrong secrets by network address. A correct secret is never refused. */
  readonly wrongSecrets: () => AttemptLimit;
}

const MAX_BYTES = 1024 * 1024;

/** The name of the sender. Set by `requireSender`. */
const senderName = requestState<string>('requireSender');

const PATHS: readonly string[] = Object.keys(SENDER_VARIABLES).map((path) => `/${path}`);

/** Answers 404 if no sender is configured for the path of the request. */
export const hideUnconfigured =
  ({ senders }: SenderParts): Middleware =>
  (ctx, next) =>
    PATHS.includes(ctx.path) && senders()[ctx.path.slice(1) as SenderPath].length === 0 ? Promise.resolve() : next();

/** Finds the sender by its secret. A wrong secret gets 401, and after too many 429. */
export const requireSender = ({ senders, wrongSecrets }: SenderParts, path: SenderPath): Middleware =>
  async function sender(ctx, next) {
    const presented = hashOf(ctx.get('authorization'));
    const found = senders()[path].find(({ secret }) => timingSafeEqual(hashOf(`Bearer ${secret}`), presented));
    if (found) {
      senderName.set(ctx, found.name);
      return next();
    }
    const over = await wrongSecrets().count(networkOf(ctx.ip));
    if (over) ctx.set('Retry-After', String(over.seconds));
    ctx.set('WWW-Authenticate', 'Bearer');
    refuse(ctx, over ? 429 : 401, wrongSecret(SENDER_VARIABLES[path]));
  };

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Applies the lines, and returns an answer for each. @throws Refusal if no line was applied */
export type PushChanges = (
  body: Buffer,
  sender: string,
) => Promise<readonly { readonly line: number; readonly result: string }[]>;

/** `POST /changes`: applies lines of JSON from the system that manages the memberships. */
export const answerChanges = (push: PushChanges): Middleware =>
  async function changes(ctx) {
    const body = await bodyOf(ctx, 'Split the lines into several requests, in the same order.');
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

/** Revokes the values in the report, and returns the answer. @throws Refusal */
export type EndLeaked = (report: string, scanner: string) => Promise<object>;

const STATUSES: Readonly<Record<string, number>> = { too_many_values: 413, not_done: 503 };

/** `POST /leaks`: revokes the values that a scanner found in public. */
export const answerLeaks = (endLeaked: EndLeaked): Middleware =>
  async function leaks(ctx) {
    const body = await bodyOf(ctx, 'Send several requests.');
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

/** @param after a cursor or `start`. @throws Refusal if the cursor is not one of this log */
export type ReadAudit = (
  after: string,
  limit: number,
) => Promise<{ entries: readonly object[]; next: string; more: boolean }>;

/** `GET /audit`: the security log by cursor, for a system that collects it. */
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

/**
 * Reads the whole body first, so that an interrupted request has no effect.
 * @param remedy what the caller should do about a body that is too large
 * @returns undefined if the body is too large (this function then answers 413) or the connection was lost
 */
async function bodyOf(ctx: Context, remedy: string): Promise<Buffer | undefined> {
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
      // The connection was lost, so the caller gets no answer.
      ctx.status = 400;
      return undefined;
    }
    if (length <= MAX_BYTES) return Buffer.concat(chunks);
  }
  ctx.set('Connection', 'close');
  const message = `The body is larger than ${MAX_BYTES} bytes.`;
  refuse(ctx, 413, new Refusal('body_too_large', message, remedy));
  return undefined;
}

function refuse(ctx: Context, status: number, { code, message, remedy }: Refusal): void {
  ctx.status = status;
  ctx.body = { code, message, remedy };
}

const wrongSecret = (variable: string): Refusal =>
  new Refusal(
    'wrong_secret',
    'The request does not contain the secret of a sender.',
    `Send the header Authorization: Bearer with a secret from ${variable}.`,
  );

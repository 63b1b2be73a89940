/** Paths of the operators' listener for senders with a bearer secret. */
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

/** The name of the sender. Set by `requireSender`. */
export const senderName = requestState<string>('requireSender');

const PATHS: readonly string[] = Object.keys(SENDER_VARIABLES).map((path) => `/${path}`);

/** Answers 404 at each path without a configured sender. */
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

/**
 * Reads the whole body, so that an interrupted request changes nothing.
 * @param remedy what the caller should do about a body that is too large
 * @returns undefined if the body is too large (this function then answers 413) or the connection was lost
 */
export async function bodyOf(
  ctx: Context,
  { maxBytes, remedy }: { readonly maxBytes: number; readonly remedy: string },
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = ctx.request.length ?? 0;
  if (length <= maxBytes) {
    length = 0;
    try {
      for await (const chunk of ctx.req.iterator({ destroyOnReturn: false })) {
        length += chunk.length;
        if (length > maxBytes) break;
        chunks.push(chunk);
      }
    } catch {
      // The connection was lost, so the caller gets no answer.
      ctx.status = 400;
      return undefined;
    }
    if (length <= maxBytes) return Buffer.concat(chunks);
  }
  ctx.set('Connection', 'close');
  const message = `The body is larger than ${maxBytes} bytes.`;
  refuse(ctx, 413, new Refusal('body_too_large', message, remedy));
  return undefined;
}

export function refuse(ctx: Context, status: number, { code, message, remedy }: Refusal): void {
  ctx.status = status;
  ctx.body = { code, message, remedy };
}

const wrongSecret = (variable: string): Refusal =>
  new Refusal(
    'wrong_secret',
    'The request does not contain the secret of a sender.',
    `Send the header Authorization: Bearer with a secret from ${variable}.`,
  );

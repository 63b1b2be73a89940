/** Limits refused requests of programs: after too many, each refusal is replaced with a 429. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import type { Settings } from '../config/settings.ts';
import { OAuthError } from './oauth-error.ts';
import type { ProviderOutcomes } from './outcomes.ts';

/** Status 429 (RFC 6585 §4), with the error code `slow_down` of RFC 8628 §3.5. */
export class TooManyFailures extends OAuthError {
  readonly refusal: OAuthError;

  constructor(seconds: number, refusal: OAuthError) {
    const description = `too many failed attempts, try again in ${seconds} seconds`;
    super(429, 'slow_down', description, { 'Retry-After': String(seconds) });
    this.refusal = refusal;
  }
}

/** If the store is unavailable, count in this process, so that the client still gets its refusal. */
const WINDOW = { windowSeconds: 60, onStoreUnavailable: 'count here' } as const;

export type FailureLimits = ReturnType<typeof createFailureLimits>;

/** Limits the wrong secrets from each network. Wrong secrets of clients and of other programs share this limit. */
export const createWrongSecretLimit = (
  createAttemptLimit: CreateAttemptLimit,
  { clientFailuresPerAddress: attempts }: Settings['limits'],
) => createAttemptLimit({ name: 'client_failures_address', attempts, ...WINDOW });

/**
 * Correct requests are never counted or refused, so the failures of other callers lock no client out. Endpoints check
 * the limits only when they refuse. That is enough because secrets, tokens and codes have at least 256 random bits
 * (rule: attempt-limits.ts).
 */
export function createFailureLimits(parts: {
  readonly settings: Settings;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly log: Logger;
  readonly outcomes: Pick<ProviderOutcomes, 'clientSecretRefused'>;
}) {
  const { settings, createAttemptLimit, log, outcomes } = parts;
  const { limits } = settings;
  const perBoth = createAttemptLimit({ name: 'client_address', attempts: limits.clientFailures, ...WINDOW });
  const perAddress = createWrongSecretLimit(createAttemptLimit, limits);

  /** Counts only by network for an unknown client, because callers can invent any number of client ids. */
  async function secondsToWait(ctx: Context, clientId?: string): Promise<number | undefined> {
    const network = networkOf(ctx.ip);
    const ofAddress = await perAddress.count(network);
    const isCounted = !ofAddress && clientId !== undefined;
    const over = isCounted ? await perBoth.count(`${clientId} ${network}`) : ofAddress;
    if (over?.isFirst) {
      const limit = ofAddress ? 'address' : 'client and address';
      const { requestId } = ctx.state;
      const about = { requestId, limit, address: ctx.ip, clientId };
      log.warn(about, 'too many refused requests: further ones are answered 429 for a while');
    }
    return over?.seconds;
  }

  return {
    /** Counts a refusal. @returns the error to send: the refusal itself, or TooManyFailures instead of it */
    async answerOf(ctx: Context, refusal: OAuthError, clientId?: string): Promise<OAuthError> {
      const seconds = await secondsToWait(ctx, clientId);
      const outcome = seconds === undefined ? 'wrong' : 'throttled';
      const isOfClient = clientId !== undefined || refusal.code === 'invalid_client';
      if (isOfClient) outcomes.clientSecretRefused(outcome);
      return seconds === undefined ? refusal : new TooManyFailures(seconds, refusal);
    },
  };
}

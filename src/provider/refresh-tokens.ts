/** Refresh tokens: one family per grant, replaced at every use, with a window for honest retries. */
import { errors } from 'oidc-provider';
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import {
  createRefreshTokenValues,
  isUsable,
  type RefreshTokenName,
  type RefreshTokenValues,
} from './refresh-token-values.ts';

/** Kept for a day after the token expired, so that the client is told "expired", not "unknown". */
const REMEMBER_EXPIRED_SECONDS = 86_400;

/** What the engine keeps of a refresh token besides its name. */
export interface RefreshTokenData {
  readonly exp: number;
  readonly iat: number;
  readonly [member: string]: unknown;
}

export interface RefreshTokens extends RefreshTokenValues {
  find(value: string): Promise<(RefreshTokenData & { consumed?: true }) | undefined>;
  save(name: RefreshTokenName, data: RefreshTokenData): Promise<void>;
}

export function createRefreshTokens({
  store,
  clock,
  keys,
  retryWindowSeconds,
  noteReplay,
  outcomes,
}: {
  store: TokenStore;
  clock: Clock;
  /** The first signs, all are accepted: so that a key can be replaced. */
  keys: readonly string[];
  /** How long the predecessor of the current token still answers; 0 means never. */
  retryWindowSeconds: number;
  /** Told of a grant that was revoked because a token of it was presented again. */
  noteReplay: (grantId: string) => void;
  outcomes: Pick<ProviderOutcomes, 'refreshRetried'>;
}): RefreshTokens {
  const values = createRefreshTokenValues(keys);
  return {
    ...values,

    async find(value) {
      const name = values.nameOf(value);
      if (!name) return undefined;
      const family = await store.readFamily<RefreshTokenData>(name.grantId);
      if (!family) return undefined;
      return {
        ...family.data,
        kind: 'RefreshToken',
        jti: value,
        grantId: name.grantId,
        rotations: name.rotation,
        // RFC 9700 §4.14.2: the engine revokes the grant of a token marked so.
        ...(isUsable(name.rotation, family, { now: clock(), retryWindowSeconds })
          ? {}
          : { consumed: true as const }),
      };
    },

    async save({ grantId, rotation }, data) {
      const now = clock();
      const expiresAt = data.exp + REMEMBER_EXPIRED_SECONDS;
      if (rotation === 0) return store.startFamily(grantId, data, now, expiresAt);
      const attempt = randomId('', 22);
      const step = { rotation, attempt, data, now, expiresAt };
      const outcome = await store.advanceFamily(grantId, step);
      // The revocation won: nothing may be issued any more.
      if (outcome === 'missing') throw new errors.InvalidGrant('refresh token was revoked');
      // Inside the window the winner's successor is ours as well, so there is nothing to write.
      if (outcome === 'advanced') return undefined;
      if (retryWindowSeconds > 0) return outcomes.refreshRetried();
      await store.remove('grant', grantId);
      noteReplay(grantId);
      throw new errors.InvalidGrant('refresh token already used');
    },
  };
}

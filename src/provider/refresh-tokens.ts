/** Refresh tokens: one family per grant, replaced at every use, with a window for honest retries. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { errors } from 'oidc-provider';
import type { Clock } from '../clock.ts';
import { randomId } from '../random-id.ts';
import type { RefreshFamily, TokenStore } from '../storage/token-store.ts';
import { PREFIX } from './token-values.ts';

/**
 * `gate_rt_`, the grant id (22 characters), the MAC (43), then the rotation in base 36.
 *
 * The value is computed, not stored: every refresh of one token arrives at the same successor, and
 * a forged or mistyped one is refused without asking the store.
 */
const VALUE = new RegExp(
  `^${PREFIX.refreshToken}([A-Za-z0-9_-]{22})([A-Za-z0-9_-]{43})([0-9a-z]{1,8})$`,
);

/** Kept for a day after the token expired, so that the client is told "expired", not "unknown". */
const REMEMBER_EXPIRED_SECONDS = 86_400;

export interface RefreshTokenName {
  readonly grantId: string;
  /** 0 for the first refresh token of a grant, one more with each refresh. */
  readonly rotation: number;
}

/** What the engine keeps of a refresh token besides its name. */
export interface RefreshTokenData {
  readonly exp: number;
  readonly iat: number;
  readonly [member: string]: unknown;
}

export interface RefreshTokens {
  valueOf(name: RefreshTokenName): string;
  /** Undefined for what this service never issued. Asks nobody. */
  nameOf(value: string): RefreshTokenName | undefined;
  find(value: string): Promise<(RefreshTokenData & { consumed?: true }) | undefined>;
  save(name: RefreshTokenName, data: RefreshTokenData): Promise<void>;
}

export function createRefreshTokens({
  store,
  clock,
  keys,
  retryWindowSeconds,
}: {
  store: TokenStore;
  clock: Clock;
  /** The first signs, all are accepted: so that a key can be replaced. */
  keys: readonly string[];
  /** How long the predecessor of the current token still answers; 0 means never. */
  retryWindowSeconds: number;
}): RefreshTokens {
  const macOf = (key: string, { grantId, rotation }: RefreshTokenName): string =>
    createHmac('sha256', key).update(`refresh-token:${grantId}:${rotation}`).digest('base64url');

  /** Current, or the immediate predecessor inside the window; anything older is a reuse. */
  function isUsable(rotation: number, family: RefreshFamily<unknown>): boolean {
    // Ahead of the record: the store lost its last writes (a crash, a failover). The MAC says that
    // we issued it, so its honest holder goes on from here.
    if (rotation >= family.rotation) return true;
    const age = clock() - family.rotatedAt;
    return rotation === family.rotation - 1 && age < retryWindowSeconds * 1000;
  }

  return {
    valueOf(name) {
      const [key = ''] = keys;
      return PREFIX.refreshToken + name.grantId + macOf(key, name) + name.rotation.toString(36);
    },

    nameOf(value) {
      const [, grantId = '', mac = '', digits = ''] = VALUE.exec(value) ?? [];
      const name = { grantId, rotation: Number.parseInt(digits, 36) };
      // Only the one spelling that we write: `01` is not `1`.
      if (name.rotation.toString(36) !== digits) return undefined;
      const presented = Buffer.from(mac);
      const isOurs = keys.some((key) => timingSafeEqual(Buffer.from(macOf(key, name)), presented));
      return isOurs ? name : undefined;
    },

    async find(value) {
      const name = this.nameOf(value);
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
        ...(isUsable(name.rotation, family) ? {} : { consumed: true as const }),
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
      if (outcome === 'advanced' || retryWindowSeconds > 0) return undefined;
      await store.remove('grant', grantId);
      throw new errors.InvalidGrant('refresh token already used');
    },
  };
}

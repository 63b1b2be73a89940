/** Refresh tokens as values: what one says by itself, and how it stands to the record of its family. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RefreshFamily } from '../storage/token-store.ts';
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

export interface RefreshTokenName {
  readonly grantId: string;
  /** 0 for the first refresh token of a grant, one more with each refresh. */
  readonly rotation: number;
}

export interface RefreshTokenValues {
  valueOf(name: RefreshTokenName): string;
  /** Undefined for what this service never issued. Asks nobody. */
  nameOf(value: string): RefreshTokenName | undefined;
}

/** @param keys the first signs, all are accepted: so that a key can be replaced. */
export function createRefreshTokenValues(keys: readonly string[]): RefreshTokenValues {
  return {
    valueOf(name) {
      const [key = ''] = keys;
      return PREFIX.refreshToken + name.grantId + macOf(key, name) + name.rotation.toString(36);
    },

    nameOf(value) {
      const claim = claimOf(value);
      if (!claim) return undefined;
      const { mac, ...name } = claim;
      const presented = Buffer.from(mac);
      const isOurs = keys.some((key) => timingSafeEqual(Buffer.from(macOf(key, name)), presented));
      return isOurs ? name : undefined;
    },
  };
}

/**
 * What a value says of itself, for a caller who need not know whether it is genuine. Undefined for
 * what has not the form of a refresh token.
 */
export function claimedNameOf(value: string): RefreshTokenName | undefined {
  const claim = claimOf(value);
  return claim && { grantId: claim.grantId, rotation: claim.rotation };
}

function claimOf(value: string): (RefreshTokenName & { mac: string }) | undefined {
  const [, grantId = '', mac = '', digits = ''] = VALUE.exec(value) ?? [];
  const rotation = Number.parseInt(digits, 36);
  // Only the one spelling that we write: `01` is not `1`.
  return rotation.toString(36) === digits ? { grantId, rotation, mac } : undefined;
}

/** Current, or the immediate predecessor inside the window; anything older is a reuse. */
export function isUsable(
  rotation: number,
  family: RefreshFamily<unknown>,
  { now, retryWindowSeconds }: { readonly now: number; readonly retryWindowSeconds: number },
): boolean {
  // Ahead of the record: the store lost its last writes (a crash, a failover). The MAC says that
  // we issued it, so its honest holder goes on from here.
  if (rotation >= family.rotation) return true;
  const age = now - family.rotatedAt;
  return rotation === family.rotation - 1 && age < retryWindowSeconds * 1000;
}

const macOf = (key: string, { grantId, rotation }: RefreshTokenName): string =>
  createHmac('sha256', key).update(`refresh-token:${grantId}:${rotation}`).digest('base64url');

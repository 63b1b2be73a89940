/** From a presented token to the authorization behind it, and how an authorization ends. */
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { RefreshTokens } from './refresh-tokens.ts';
import type { AccessTokenData, GrantData, MachineTokenData } from './store-adapter.ts';
import { grantIdIn, kindOf } from './token-values.ts';

/** A token that is good now, as far as the token store knows. Times are seconds since the epoch. */
export interface LiveToken {
  readonly kind: 'access_token' | 'machine_token';
  readonly clientId: string;
  /** Absent for a machine token: it acts for nobody. */
  readonly accountId?: string;
  readonly grantId?: string;
  /** Of a machine token: dead where its client has a later one. */
  readonly generation?: number;
  readonly expiresAt: number;
  readonly issuedAt: number;
}

export interface Grants {
  /** The access token or machine access token behind a value; undefined when it is not good. */
  findAccessToken(value: string): Promise<LiveToken | undefined>;
  /** The grant a refresh token belongs to, current or not. */
  findRefreshToken(value: string): Promise<{ grantId: string; clientId: string } | undefined>;
  /** Ends every token of a grant at once, on every node. */
  revoke(grantId: string): Promise<void>;
  revokeMachineToken(value: string): Promise<void>;
}

export function createGrants({
  store,
  refreshTokens,
  clock,
}: {
  store: TokenStore;
  refreshTokens: Pick<RefreshTokens, 'nameOf'>;
  clock: Clock;
}): Grants {
  async function findMachineToken(value: string): Promise<LiveToken | undefined> {
    const record = await store.read<MachineTokenData>('machine_token', value);
    if (!record) return undefined;
    const [clientId, lifetime, generation = 0] = record.data;
    const { expiresAt } = record;
    const issuedAt = expiresAt - lifetime;
    return { kind: 'machine_token', clientId, generation, expiresAt, issuedAt };
  }

  return {
    async findAccessToken(value) {
      const kind = kindOf(value);
      if (kind === 'machineToken') return findMachineToken(value);
      if (kind !== 'accessToken') return undefined;
      const grantId = grantIdIn(value);
      const [record, grant] = await store.readBoth<AccessTokenData, GrantData>(
        { kind: 'access_token', id: value },
        { kind: 'grant', id: grantId },
      );
      // The Grant decides: without it every token of it is dead.
      if (!record || !grant) return undefined;
      const { accountId, clientId } = grant.data;
      const expiresAt = Math.min(record.expiresAt, grant.expiresAt);
      const issuedAt = record.expiresAt - record.data;
      return { kind: 'access_token', clientId, accountId, grantId, expiresAt, issuedAt };
    },

    async findRefreshToken(value) {
      const name = refreshTokens.nameOf(value);
      const grant = name && (await store.read<GrantData>('grant', name.grantId));
      if (!grant || grant.expiresAt <= epochSeconds(clock)) return undefined;
      return { grantId: name.grantId, clientId: grant.data.clientId };
    },

    async revoke(grantId) {
      // The Grant first: from here on no token of it is accepted, whatever fails or races after.
      await store.remove('grant', grantId);
      await store.removeFamily(grantId);
    },

    async revokeMachineToken(value) {
      await store.remove('machine_token', value);
    },
  };
}

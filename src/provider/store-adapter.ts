/** The engine's adapter: its models, kept in the token store. */
import { type Adapter, type AdapterPayload, errors } from 'oidc-provider';
import { randomId } from '../random-id.ts';
import type { RecordKind, TokenStore } from '../storage/token-store.ts';
import type { RefreshTokenData, RefreshTokens } from './refresh-tokens.ts';
import { kindOf } from './token-values.ts';

/** Kept for an hour after the code expired: a late replay still ends the tokens it gave out. */
const REMEMBER_CODE_SECONDS = 3_600;

/** What is kept of an access token; the rest is its grant's. Lifetimes in seconds. */
export type AccessTokenData = readonly [grantId: string, lifetime: number];
/** What is kept of a machine access token. */
export type MachineTokenData = readonly [clientId: string, lifetime: number];
/** What is kept of a grant: who allowed whom. */
export interface GrantData {
  readonly accountId: string;
  readonly clientId: string;
  readonly iat: number;
}

type ModelAdapter = Pick<Adapter, 'find' | 'upsert' | 'destroy'> & Partial<Adapter>;

/** The adapter factory for the engine's `adapter` setting. */
export function storeAdapter({
  store,
  refreshTokens,
}: {
  store: TokenStore;
  refreshTokens: RefreshTokens;
}): (model: string) => Adapter {
  const models: Record<string, ModelAdapter> = {
    AuthorizationCode: codes(store),
    AccessToken: {
      ...recordsOf(store, 'access_token'),
      async upsert(id, { grantId, exp = 0, iat = 0 }) {
        await store.write('access_token', id, [grantId, exp - iat], exp);
      },
    },
    ClientCredentials: {
      ...recordsOf(store, 'machine_token'),
      async upsert(id, { clientId, exp = 0, iat = 0 }) {
        await store.write('machine_token', id, [clientId, exp - iat], exp);
      },
    },
    RefreshToken: refreshTokenFamilies(store, refreshTokens),
    Grant: {
      ...recordsOf(store, 'grant'),
      async upsert(id, { accountId, clientId, exp = 0, iat }) {
        await store.write('grant', id, { accountId, clientId, iat }, exp);
      },
    },
    Interaction: {
      ...recordsOf(store, 'interaction'),
      async upsert(id, { jti: _, exp = 0, session, ...data }) {
        // The engine adds the value of the session cookie, and never reads it.
        const { cookie: _cookie, ...known } = session ?? {};
        const kept = session ? { ...data, session: known } : data;
        await store.write('interaction', id, kept, exp);
      },
      async destroy(id) {
        // Answered once: of several that resume the same interaction one goes on.
        if (await store.remove('interaction', id)) return;
        throw new errors.SessionNotFound('interaction session not found');
      },
    },
    Session: sessions(store),
  };
  return (model) => {
    const adapter = models[model];
    // Switched-off features keep nothing; one that is switched on must be given a place first.
    if (!adapter) throw new TypeError(`no storage for ${model}`);
    return { ...unused, ...adapter };
  };
}

const unused: Omit<Adapter, 'find' | 'upsert' | 'destroy'> = {
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => {},
  // The Grant decides (each use of a token asks for it), so no list of its tokens is kept.
  revokeByGrantId: async () => {},
};

function recordsOf(store: TokenStore, kind: RecordKind): ModelAdapter {
  return {
    async find(id) {
      const record = await store.read<AdapterPayload>(kind, id);
      return record && { ...record.data, jti: id, exp: record.expiresAt };
    },
    async upsert(id, { jti: _, exp = 0, ...data }) {
      await store.write(kind, id, data, exp);
    },
    async destroy(id) {
      await store.remove(kind, id);
    },
  };
}

function codes(store: TokenStore): ModelAdapter {
  return {
    ...recordsOf(store, 'code'),
    async find(id) {
      if (kindOf(id) !== 'code') return undefined;
      const record = await store.read<AdapterPayload>('code', id);
      if (!record) return undefined;
      const { exp, ...data } = record.data;
      // Without `exp` the engine calls a used code used, not expired: only then it ends the tokens.
      return { ...data, jti: id, ...(record.isConsumed ? { consumed: true } : { exp }) };
    },
    async upsert(id, { jti: _, ...data }) {
      await store.write('code', id, data, (data.exp ?? 0) + REMEMBER_CODE_SECONDS);
    },
    async consume(id) {
      if (await store.consumeCode(id, randomId('', 22))) return;
      // RFC 6749 §4.1.2: the second of two that arrive together is a replay, and ends the tokens.
      const record = await store.read<AdapterPayload>('code', id);
      if (record?.data.grantId) await store.remove('grant', record.data.grantId);
      throw new errors.InvalidGrant('authorization code already consumed');
    },
  };
}

function refreshTokenFamilies(store: TokenStore, refreshTokens: RefreshTokens): ModelAdapter {
  return {
    find: (value) => refreshTokens.find(value),
    async upsert(value, { jti: _, kind: _kind, grantId: _grantId, rotations, ...data }) {
      const name = refreshTokens.nameOf(value);
      if (name) await refreshTokens.save(name, data as RefreshTokenData);
    },
    // The engine destroys a reused token and then its grant; revokeByGrantId below does both.
    destroy: async () => {},
    async revokeByGrantId(grantId) {
      // The Grant first: what fails after it is only left-over rows.
      await store.remove('grant', grantId);
      await store.removeFamily(grantId);
    },
  };
}

function sessions(store: TokenStore): ModelAdapter {
  return {
    ...recordsOf(store, 'session'),
    async upsert(id, { jti: _, exp = 0, ...data }) {
      await store.writeSession(id, String(data.uid), data, exp);
    },
    async findByUid(uid) {
      const record = await store.readSessionByUid<AdapterPayload>(uid);
      // Its identifier is kept as a hash only; the engine compares accounts here, not identifiers.
      return record && { ...record.data, exp: record.expiresAt };
    },
  };
}

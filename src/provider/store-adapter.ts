/** The engine's adapter: its models, kept in the token store. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import { randomId } from '../random-id.ts';
import type { RecordKind, TokenStore } from '../storage/token-store.ts';
import { clientOf } from './engine-clients.ts';
import type { RefreshTokenData, RefreshTokens } from './refresh-tokens.ts';
import type { NoteReplay } from './replays.ts';
import { kindOf } from './token-values.ts';

/** Kept for an hour after the code expired: a late replay still ends the tokens it gave out. */
const REMEMBER_CODE_SECONDS = 3_600;

/**
 * What is kept of an access token: its lifetime in seconds. The rest is its grant's, whose id
 * stands in the token.
 */
export type AccessTokenData = number;
/** What is kept of a machine access token; the client's token generation is left out while it is 0. */
export type MachineTokenData = readonly [clientId: string, lifetime: number, generation?: number];
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
  noteReplay,
}: {
  store: TokenStore;
  refreshTokens: RefreshTokens;
  noteReplay: NoteReplay;
}): (model: string) => Adapter {
  const models: Record<string, ModelAdapter> = {
    AuthorizationCode: codes(store, noteReplay),
    AccessToken: {
      ...recordsOf(store, 'access_token'),
      async upsert(id, { exp = 0, iat = 0 }) {
        await store.write('access_token', id, exp - iat, exp);
      },
    },
    ClientCredentials: {
      ...recordsOf(store, 'machine_token'),
      async upsert(id, { clientId, exp = 0, iat = 0 }) {
        // Of the client as it was when it authenticated: tokens that are ended meanwhile stay ended.
        const { tokenGeneration } = clientOf(Provider.ctx?.oidc.client);
        const generation = tokenGeneration === 0 ? [] : [tokenGeneration];
        await store.write('machine_token', id, [clientId, exp - iat, ...generation], exp);
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
        if (data.result === undefined) return store.write('interaction', id, kept, exp);
        // An answer to what waits. Where it was resumed meanwhile, it must not wait again.
        if (await store.replace('interaction', id, kept, exp)) return;
        throw new errors.SessionNotFound('interaction session not found');
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

function codes(store: TokenStore, noteReplay: NoteReplay): ModelAdapter {
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
      const grantId = record?.data.grantId;
      if (grantId !== undefined) {
        await store.remove('grant', grantId);
        noteReplay(grantId);
      }
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

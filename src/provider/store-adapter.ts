/** The engine's adapter: its models, kept in the token store. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import type { MachineTokens } from '../authorizations/machine-tokens.ts';
import type { RecordKind, TokenStore } from '../storage/token-store.ts';
import { clientOf } from './engine-clients.ts';

type ModelAdapter = Pick<Adapter, 'find' | 'upsert' | 'destroy'> & Partial<Adapter>;

/**
 * The adapter factory for the engine's `adapter` setting. Codes, refresh tokens, access tokens and
 * grants are no models here: they are values of an authorization.
 */
export function storeAdapter({
  store,
  machineTokens,
}: {
  store: TokenStore;
  machineTokens: MachineTokens;
}): (model: string) => Adapter {
  const models: Record<string, ModelAdapter> = {
    ClientCredentials: {
      find: async () => undefined,
      async upsert(value, { exp: expiresAt = 0, iat: issuedAt = 0 }) {
        const client = clientOf(Provider.ctx?.oidc.client);
        await machineTokens.keep(value, { client, issuedAt, expiresAt });
      },
      destroy: async () => {},
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

function sessions(store: TokenStore): ModelAdapter {
  return {
    ...recordsOf(store, 'session'),
    // session-writes.ts does, and knows which one is begun.
    upsert: () => Promise.reject(new TypeError('a session was written by the engine')),
    async findByUid(uid) {
      const record = await store.readSessionByUid<AdapterPayload>(uid);
      // Its identifier is kept as a hash only; the engine compares accounts here, not identifiers.
      return record && { ...record.data, exp: record.expiresAt };
    },
  };
}

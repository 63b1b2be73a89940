/** The engine's adapter: stores its models in the token store. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import type { Settings } from '../config/settings.ts';
import type { RecordKind, StoredRecord, TokenStore } from '../storage/token-store.ts';
import { endOfSession, type SessionTimes } from './session-ages.ts';

type ModelAdapter = Pick<Adapter, 'find' | 'upsert' | 'destroy'> & Partial<Adapter>;

interface StoreParts {
  readonly store: TokenStore;
  /** Limits pending interactions without a user, per network, because each is stored. */
  readonly waiting: AttemptLimit;
  readonly settings: Pick<Settings, 'sessions'>;
}

/** Creates the storage adapter for each model of the engine. Gatehouse itself stores codes, tokens and grants. */
export function storeAdapter(parts: StoreParts): (model: string) => Adapter {
  const { store, waiting } = parts;
  const interactions = recordsOf(store, 'interaction');
  const models: Record<string, ModelAdapter> = {
    Interaction: {
      ...interactions,
      async find(id) {
        const found = await interactions.find(id);
        // Ignore the record that interactions.ts stores for an answered interaction: it has no params.
        return found?.params ? found : undefined;
      },
      async upsert(id, { jti: _, exp = 0, session, ...data }) {
        // Omit the value of the session cookie, which the engine adds but never reads.
        const { cookie: _cookie, ...known } = session ?? {};
        const kept = session ? { ...data, session: known } : data;
        if (data.result === undefined) {
          if (!isSignedIn(session)) await refuseTooMany(waiting);
          return store.write('interaction', id, kept, exp);
        }
        // Only replace an existing record: a resumed interaction must not become pending again.
        if (await store.replace('interaction', id, kept, exp)) return;
        throw new errors.SessionNotFound('interaction session not found');
      },
      async destroy(id) {
        // Several requests may resume this interaction, but only the one that removes it continues.
        if (await store.remove('interaction', id)) {
          const { oidc, ip } = Provider.ctx ?? {};
          const { session } = oidc?.entities.Interaction ?? {};
          if (ip !== undefined && !isSignedIn(session)) await waiting.refund(networkOf(ip));
          return;
        }
        throw new errors.SessionNotFound('interaction session not found');
      },
    },
    Session: sessions(parts),
  };
  return (model) => {
    const adapter = models[model];
    // Only disabled features of the engine store other models. To enable such a feature, add its model above.
    if (!adapter) throw new TypeError(`no storage for ${model}`);
    return { ...unused, ...adapter };
  };
}

const isSignedIn = (session: { accountId?: string | undefined } | undefined): boolean =>
  session?.accountId !== undefined;

/** @throws `slow_down`, shown on our page, because an app that received it by redirect would retry */
async function refuseTooMany(waiting: AttemptLimit): Promise<void> {
  const { ctx } = Provider;
  const over = ctx && (await waiting.count(networkOf(ctx.ip)));
  if (!over) return;
  ctx.set('Retry-After', String(over.seconds));
  throw Object.assign(new errors.OIDCProviderError(429, 'slow_down'), {
    error_description: 'too many pending sign-ins from this network address',
    allow_redirect: false,
  });
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

function sessions({ store, settings }: Pick<StoreParts, 'store' | 'settings'>): ModelAdapter {
  type Kept = AdapterPayload & SessionTimes;

  /** The stored record has no `exp`. Add it, so that the engine refuses an expired session. */
  const payloadOf = (record: StoredRecord<Kept>): AdapterPayload => ({
    ...record.data,
    exp: endOfSession(record, settings.sessions),
  });

  return {
    ...recordsOf(store, 'session'),
    async find(id) {
      const record = await store.read<Kept>('session', id);
      return record && { ...payloadOf(record), jti: id };
    },
    // Only session-writes.ts writes sessions, because it knows which of them are new.
    upsert: () => Promise.reject(new TypeError('a session was written by the engine')),
    async findByUid(uid) {
      const record = await store.readSessionByUid<Kept>(uid);
      // Return no `jti`: the store has only a hash of the session's `jti`, and the engine compares only the account.
      return record && payloadOf(record);
    },
  };
}

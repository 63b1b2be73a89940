/** The engine's adapter: stores its models in the token store. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import type { Settings } from '../config/settings.ts';
import type { RecordKind, StoredRecord, TokenStore } from '../storage/token-store.ts';
import { endOfSession, type SessionTimes } from './session-ages.ts';

type ModelAdapter = Pick<Adapter, 'find' | 'upsert' | 'destroy'> & Partial<Adapter>;

/**
 * The adapter factory for the engine's `adapter` setting. Codes, tokens and grants are no models
 * here: they belong to an authorization, or to a machine client.
 */
export function storeAdapter(parts: {
  store: TokenStore;
  /** Limits waiting interactions without a user per network, so that they cannot fill the store. */
  waiting: AttemptLimit;
  settings: Pick<Settings, 'sessions'>;
}): (model: string) => Adapter {
  const { store, waiting } = parts;
  const interactions = recordsOf(store, 'interaction');
  const models: Record<string, ModelAdapter> = {
    Interaction: {
      ...interactions,
      async find(id) {
        const found = await interactions.find(id);
        // The record that interactions.ts keeps of an answered interaction is not one itself.
        return found?.params ? found : undefined;
      },
      async upsert(id, { jti: _, exp = 0, session, ...data }) {
        // Drop the value of the session cookie: the engine adds it, and never reads it.
        const { cookie: _cookie, ...known } = session ?? {};
        const kept = session ? { ...data, session: known } : data;
        if (data.result === undefined) {
          if (!isSignedIn(session)) await refuseTooMany(waiting);
          return store.write('interaction', id, kept, exp);
        }
        // It is being answered. If it was resumed meanwhile, it must not wait again.
        if (await store.replace('interaction', id, kept, exp)) return;
        throw new errors.SessionNotFound('interaction session not found');
      },
      async destroy(id) {
        // Answered once: of several requests that resume this interaction, only one continues.
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
    // Disabled features store nothing; one that is enabled needs a model above first.
    if (!adapter) throw new TypeError(`no storage for ${model}`);
    return { ...unused, ...adapter };
  };
}

/** True if the interaction was started in a user's session. */
const isSignedIn = (session: { accountId?: string | undefined } | undefined): boolean =>
  session?.accountId !== undefined;

/** @throws `slow_down`, shown here: redirected to the app, it would make the app start again */
async function refuseTooMany(waiting: AttemptLimit): Promise<void> {
  const { ctx } = Provider;
  const over = ctx && (await waiting.count(networkOf(ctx.ip)));
  if (!over) return;
  ctx.set('Retry-After', String(over.seconds));
  throw Object.assign(new errors.OIDCProviderError(429, 'slow_down'), {
    error_description: 'too many sign-ins wait at this network address',
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

function sessions({ store, settings }: Parameters<typeof storeAdapter>[0]): ModelAdapter {
  type Kept = AdapterPayload & SessionTimes;

  /** Every read of a session uses this; the engine accepts none whose `exp` has passed. */
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
    // session-writes.ts writes sessions: it knows which of them are new.
    upsert: () => Promise.reject(new TypeError('a session was written by the engine')),
    async findByUid(uid) {
      const record = await store.readSessionByUid<Kept>(uid);
      // Without its identifier, of which only a hash is stored: here the engine compares accounts.
      return record && payloadOf(record);
    },
  };
}

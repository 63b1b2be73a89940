/** The engine's adapter: its models, kept in the token store. */
import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import type { Settings } from '../config/settings.ts';
import type { RecordKind, StoredRecord, TokenStore } from '../storage/token-store.ts';
import { endOfSession, type SessionTimes } from './session-ages.ts';

type ModelAdapter = Pick<Adapter, 'find' | 'upsert' | 'destroy'> & Partial<Adapter>;

/**
 * The adapter factory for the engine's `adapter` setting. Codes, tokens and grants are no models
 * here: they are values of an authorization, or of a machine.
 */
export function storeAdapter(parts: {
  store: TokenStore;
  /** Interactions per network that wait for a sign-in: nobody fills the store with them. */
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
        // What interactions.ts remembers of an answered one is none.
        return found?.params ? found : undefined;
      },
      async upsert(id, { jti: _, exp = 0, session, ...data }) {
        // The engine adds the value of the session cookie, and never reads it.
        const { cookie: _cookie, ...known } = session ?? {};
        const kept = session ? { ...data, session: known } : data;
        if (data.result === undefined) {
          if (!isOfSomebody(session)) await refuseTooMany(waiting);
          return store.write('interaction', id, kept, exp);
        }
        // An answer to what waits. Where it was resumed meanwhile, it must not wait again.
        if (await store.replace('interaction', id, kept, exp)) return;
        throw new errors.SessionNotFound('interaction session not found');
      },
      async destroy(id) {
        // Answered once: of several that resume the same interaction one goes on.
        if (await store.remove('interaction', id)) {
          const { oidc, ip } = Provider.ctx ?? {};
          const { session } = oidc?.entities.Interaction ?? {};
          if (ip !== undefined && !isOfSomebody(session)) await waiting.giveBack(networkOf(ip));
          return;
        }
        throw new errors.SessionNotFound('interaction session not found');
      },
    },
    Session: sessions(parts),
  };
  return (model) => {
    const adapter = models[model];
    // Switched-off features keep nothing; one that is switched on must be given a place first.
    if (!adapter) throw new TypeError(`no storage for ${model}`);
    return { ...unused, ...adapter };
  };
}

/** Whether it was begun in a session. */
const isOfSomebody = (session: { accountId?: string | undefined } | undefined): boolean =>
  session?.accountId !== undefined;

/** @throws `slow_down`, which is said here: sent back to the app, the request would begin again. */
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

  /** All that reads a session comes here; the engine takes none whose `exp` is over. */
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
    // session-writes.ts does, and knows which one is begun.
    upsert: () => Promise.reject(new TypeError('a session was written by the engine')),
    async findByUid(uid) {
      const record = await store.readSessionByUid<Kept>(uid);
      // Its identifier is kept as a hash only; the engine compares accounts here, not identifiers.
      return record && payloadOf(record);
    },
  };
}

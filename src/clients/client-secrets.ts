/** Creates, compares and replaces a client's secrets. At least one secret stays valid, unless all of them leaked. */
import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { message } from '../base/message.ts';
import { formTest, newValue, randomId, sha256 } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { type Client, type ClientKind, type ClientSecret, hasSecret } from './client.ts';

const SECRET_ID = /^sec_[A-Za-z0-9_-]{16}$/;

/** Changes this client in a transaction. @throws Refusal `client_unknown` if `id` is malformed */
export type ChangeClient = <Result>(id: string, work: (tx: Queries) => Promise<Result>) => Promise<Result>;

export function createClientSecrets(parts: {
  readonly database: Database;
  readonly changing: ChangeClient;
  readonly clock: Clock;
  readonly readChanged: (id: string) => Promise<Client>;
}) {
  const { database, changing, clock, readChanged } = parts;

  /** Runs only one change of a client's secrets at a time. Parallel changes wait. */
  function changeSecrets<Result>(
    id: string,
    change: (tx: Queries, kind: ClientKind, secrets: readonly StoredSecret[]) => Promise<Result>,
  ): Promise<Result> {
    return changing(id, async (tx) => {
      const [locked] = await tx.query<{ kind: ClientKind }>(
        'SELECT kind FROM clients WHERE id = $1 FOR NO KEY UPDATE',
        [id],
      );
      if (!locked) throw unknownClient(id);
      const secrets = await tx.query<StoredSecret>(
        'SELECT id, leaked_at IS NOT NULL AS "isLeaked" FROM client_secrets WHERE client_id = $1',
        [id],
      );
      return change(tx, locked.kind, secrets);
    });
  }

  return {
    /** Returns the id of the client with this secret, for operators. Finds leaked secrets, too. */
    async findClientIdBySecret(secret: string): Promise<string | undefined> {
      const [found] = await database.query<{ client_id: string }>(
        'SELECT client_id FROM client_secrets WHERE secret_hash = $1',
        [sha256(secret)],
      );
      return found?.client_id;
    },

    /**
     * Adds a secret and returns its value, for the only time. Leaked secrets do not count toward `MAX_SECRETS`.
     *
     * @throws Refusal `client_unknown`, `secret_unused` or `secrets_full`
     */
    async addSecret(
      id: string,
      inTransaction?: InTransaction<{ readonly lastFour: string }>,
    ): Promise<{ client: Client; secret: string }> {
      const secret = newClientSecret();
      await changeSecrets(id, async (tx, kind, secrets) => {
        if (!hasSecret(kind)) throw unusedSecret();
        if (secrets.filter(isUsable).length >= MAX_SECRETS) throw fullSecrets();
        // At most two secrets are stored, so remove a refused one.
        if (secrets.length >= MAX_SECRETS) await tx.query(REMOVE_REFUSED, [id]);
        await insertSecret(tx, id, secret, new Date(clock()));
        await inTransaction?.(tx, secret);
      });
      return { client: await readChanged(id), secret: secret.value };
    },

    /** Removes a secret, which is then refused. @throws Refusal `client_unknown`, `secret_unknown` or `secret_last` */
    async removeSecret(
      id: string,
      secretId: string,
      inTransaction?: InTransaction<{ readonly lastFour: string }>,
    ): Promise<Client> {
      await changeSecrets(id, async (tx, _kind, secrets) => {
        const others = secrets.filter((secret) => secret.id !== secretId);
        if (!SECRET_ID.test(secretId) || others.length === secrets.length) throw unknownSecret();
        if (!others.some(isUsable)) throw lastSecret(others.length > 0);
        const removed = await tx.query<{ last_four: string }>(
          'DELETE FROM client_secrets WHERE id = $1 RETURNING last_four',
          [secretId],
        );
        for (const { last_four: lastFour } of removed) await inTransaction?.(tx, { lastFour });
      });
      return readChanged(id);
    },

    /**
     * Renews a client whose secrets or tokens were stolen: ends all its secrets, and creates one new secret. What was
     * issued before is refused, except refresh tokens: together with the new secret, they work until the first refresh.
     *
     * @param inTransaction receives the last characters of the secrets, for the audit log
     * @returns `client` is undefined if it could not be read after the renewal; the secret is returned nevertheless. If
     * the same form was sent before, `lastFour` has the last characters of the secret that was created then.
     * @throws Refusal `client_unknown`, `not_renewable` or `renewed_just_now`
     */
    async renew(
      id: string,
      inTransaction?: InTransaction<{ readonly last_four: string; readonly ended_secrets: readonly string[] }>,
      form?: {
        /** A hash of the form. Sending a form twice renews the client only once. */
        readonly key: string;
        /** Called before the client is renewed, so that the secret can be shown even if the database's answer is lost. */
        keep(secret: Pick<NewClientSecret, 'value' | 'lastFour'>): Promise<unknown>;
      },
    ): Promise<{ client: Client | undefined; secret: string; lastFour: string }> {
      const made = newClientSecret();
      const secret = form ? { ...made, id: `sec_${form.key.slice(0, 16)}` } : made;
      const keptAt = clock();
      await form?.keep(secret);
      const lastFour = await changeSecrets(id, async (tx, kind) => {
        refuseRenewal(kind);
        // Refuse if the lock was granted only after a minute: the stored secret may expire before it is shown.
        if (clock() - keptAt > 60_000) throw new StorageUnavailable('postgresql', new Error('the lock took a minute'));
        // If this form renewed the client in the last five minutes, do not renew the client again.
        const [before] = await tx.query<{ lastFour: string }>(
          'SELECT last_four AS "lastFour" FROM client_secrets WHERE id = $1 AND client_id = $2 AND created_at > $3',
          [secret.id, id, new Date(clock() - SHOWN_MS)],
        );
        if (before) return before.lastFour;
        const raised = await tx.query(RENEW, [id, new Date(clock())]);
        // If two users renew the client at the same time, the secret that the first one sees must stay valid.
        if (raised.length === 0) throw renewedJustNow();
        const ended = await tx.query<{ last_four: string }>(
          'DELETE FROM client_secrets WHERE client_id = $1 RETURNING last_four',
          [id],
        );
        await insertSecret(tx, id, secret, new Date(clock()));
        const endedSecrets = ended.map((one) => one.last_four).sort();
        await inTransaction?.(tx, { last_four: secret.lastFour, ended_secrets: endedSecrets });
        return secret.lastFour;
      });
      return { client: await readChanged(id).catch(() => undefined), secret: secret.value, lastFour };
    },

    /** Marks a secret that was found in public. Returns undefined if the secret is unknown or already marked. */
    async markLeaked(value: string, record: InTransaction<LeakedSecret>): Promise<LeakedSecret | undefined> {
      const marked = await database.transaction(async (tx) => {
        const values = [sha256(value), new Date(clock())];
        const [secret] = await tx.query<LeakedSecret>(MARK_LEAKED, values);
        if (secret) await record(tx, secret);
        return secret;
      });
      // Read the client only to clear this node's cache. Ignore failures, because the secret is already marked.
      if (marked) await readChanged(marked.clientId).catch(() => {});
      return marked;
    },

    /** Refuses leaked secrets whose grace period has ended. They stay refused even if the period is prolonged later. */
    refuseLeaked: (graceSeconds: number, record: InTransaction<readonly LeakedSecret[]>): Promise<number> =>
      database.transaction(async (tx) => {
        const [now, since] = [clock(), clock() - graceSeconds * 1000].map((ms) => new Date(ms));
        const refused = await tx.query<LeakedSecret>(REFUSE_LEAKED, [now, since]);
        await record(tx, refused);
        return refused.length;
      }),
  };
}

/** How long the secret of a renewal can be shown. Meanwhile, sending the form again creates no other secret. */
const SHOWN_MS = 5 * 60_000;

export interface LeakedSecret extends Pick<ClientSecret, 'lastFour' | 'leakedAt'> {
  readonly clientId: string;
  readonly name: string;
  readonly kind: ClientKind;
  /** Null if the operator provides the client. */
  readonly ownerAccountId: string | null;
}

const RETURN_LEAKED = `RETURNING c.id AS "clientId", c.name, c.kind, s.last_four AS "lastFour",
  s.leaked_at AS "leakedAt", c.owner_account_id AS "ownerAccountId"`;
/** Maximum number of stored ids of leaked secrets per client. A deleted secret's id stays: its tokens may be valid. */
const MAX_LEAKED = 100;
const MARK_LEAKED = `WITH marked AS (
    UPDATE client_secrets s SET leaked_at = $2 FROM clients c
      WHERE c.id = s.client_id AND s.secret_hash = $1 AND s.leaked_at IS NULL ${RETURN_LEAKED}, s.id),
  tokens AS (
    UPDATE clients c SET leaked_secrets = (c.leaked_secrets || marked.id)[
        greatest(1, cardinality(c.leaked_secrets) + 2 - ${MAX_LEAKED}):]
      FROM marked WHERE c.id = marked."clientId" AND c.kind = 'machine')
  SELECT * FROM marked`;
const REFUSE_LEAKED = `UPDATE client_secrets s
  SET refused_at = $1
  FROM clients c WHERE c.id = s.client_id AND s.refused_at IS NULL AND s.leaked_at IS NOT NULL
    AND s.leaked_at <= CASE c.kind WHEN 'machine' THEN $1::timestamptz ELSE $2 END
  ${RETURN_LEAKED}`;

/**
 * Returns undefined unless the secret was found in public. The secret of a machine client is refused at once, because
 * it alone is enough to get tokens.
 *
 * @param graceSeconds the setting `leaks.secret_grace`
 */
export const refusedFrom = (
  { kind }: Pick<Client, 'kind'>,
  { leakedAt, refusedAt }: Pick<ClientSecret, 'leakedAt' | 'refusedAt'>,
  graceSeconds: number,
): Date | undefined =>
  refusedAt ?? (leakedAt && new Date(leakedAt.getTime() + (kind === 'machine' ? 0 : graceSeconds * 1000)));

const RENEW = `UPDATE clients
  SET updated_at = $2, generation = generation + 1, renewed_at = clock_timestamp(), leaked_secrets = '{}'
  WHERE id = $1 AND (renewed_at IS NULL OR renewed_at < clock_timestamp() - interval '1 minute')
  RETURNING 1`;

interface StoredSecret {
  readonly id: string;
  readonly isLeaked: boolean;
}

const isUsable = ({ isLeaked }: StoredSecret): boolean => !isLeaked;

const REMOVE_REFUSED = 'DELETE FROM client_secrets WHERE client_id = $1 AND refused_at IS NOT NULL';

export async function insertSecret(
  tx: Queries,
  clientId: string,
  secret: NewClientSecret,
  createdAt: Date,
): Promise<void> {
  await tx.query(
    `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
      VALUES ($1, $2, $3, $4, $5)`,
    [secret.id, clientId, secret.hash, secret.lastFour, createdAt],
  );
}

export function unknownClient(id: string): Refusal {
  return new Refusal('client_unknown', `There is no client ${id}.`, 'List the clients to find it.');
}

const unusedSecret = (): Refusal =>
  new Refusal(
    'secret_unused',
    'A public client has no secret.',
    'No change is needed: a public client proves itself with PKCE.',
  );

export const isRenewable = (kind: ClientKind): boolean => NOT_RENEWABLE[kind] === undefined;

/** @throws Refusal `not_renewable` for kinds of clients for which a renewal is useless */
export function refuseRenewal(kind: ClientKind): void {
  const why = NOT_RENEWABLE[kind];
  if (why) throw new Refusal('not_renewable', ...why);
}

const NOT_RENEWABLE: { readonly [Kind in ClientKind]?: readonly [message: string, remedy: string] } = {
  public: [
    'A public client has no secret, so a thief of its tokens cannot be distinguished from the client.',
    '`revoke --client` ends everything that was issued to it: people must then approve it again.',
  ],
  'resource-server': [
    'A resource server has no tokens that could end.',
    'Add a secret with `clients rotate-secret`, and remove the stolen one with `clients remove-secret`.',
  ],
};

const renewedJustNow = (): Refusal =>
  new Refusal(
    'renewed_just_now',
    'The client was renewed a moment ago: nothing was changed.',
    'Use the secret that was shown then. If it is lost, renew the client again after a minute.',
  );

function fullSecrets(): Refusal {
  const said = `The client already has ${MAX_SECRETS} secrets.`;
  const text = message('client-refusals.secrets_full', { max: MAX_SECRETS });
  const problems = [{ code: 'secrets_full', message: said, text }];
  return new Refusal('secrets_full', said, 'Remove the one that is no longer used, then add another.', { problems });
}

const unknownSecret = (): Refusal =>
  new Refusal(
    'secret_unknown',
    'The client has no such secret.',
    'See its list of secrets: this one may have been removed already.',
  );

const lastSecret = (areOthersLeaked: boolean): Refusal =>
  new Refusal(
    'secret_last',
    areOthersLeaked
      ? 'The other secret was found in public: without this one, the client could not authenticate.'
      : 'This is the only secret of the client: without it, the client could not authenticate.',
    'Add a new secret first, and switch the client to it.',
  );

/** Maximum number of secrets, without leaked ones: during a rotation, an old and a new one are both valid. */
export const MAX_SECRETS = 2;

const isSecret = formTest('client_secret');

export interface NewClientSecret {
  readonly id: string;
  /** The secret itself. It is shown once and never stored. */
  readonly value: string;
  readonly hash: string;
  readonly lastFour: string;
}

/** Creates a secret of 258 random bits. So a fast hash is enough to protect the stored secret (OWASP ASVS 6.5.2). */
export function newClientSecret(): NewClientSecret {
  const value = newValue('client_secret');
  return {
    id: randomId('sec_', 16),
    value,
    hash: sha256(value),
    lastFour: value.slice(-4),
  };
}

/** Also finds a leaked secret: the caller must check `refusedFrom`, and that the client is not suspended. */
export function findSecret(client: Client | undefined, presented: string): ClientSecret | undefined {
  // Require exactly the form of our secrets, without a NUL, space or newline at the end.
  if (!isSecret(presented)) return undefined;
  const hash = Buffer.from(sha256(presented));
  return client?.secrets.find((secret) => timingSafeEqual(hash, Buffer.from(secret.hash)));
}

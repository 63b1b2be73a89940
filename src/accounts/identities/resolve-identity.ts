/** Finds and links the account of a user who signs in with a provider. */
import { lockedTransactionOf } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import { emailKey, isSameMailbox } from '../email.ts';
import type { RequireMayAdd } from '../sign-in-methods.ts';
import type { Identities, Identity, LinkOutcome } from './identities.ts';

export interface IdentitySource {
  readonly id: string;
  readonly label: string;
  readonly match: 'external_id' | 'verified_email' | 'none';
}

export interface ProviderIdentity extends Identity {
  /** Called only if the identity is not linked with an account. */
  claims(): Promise<{
    readonly externalId: string | undefined;
    readonly verifiedEmail: string | undefined;
    readonly hasUnverifiedEmail: boolean;
  }>;
}

/**
 * Why a user is refused. `unknown`: the user has no account. `unverified`: the provider has not verified the address,
 * so no account was looked up by the address. `taken`: the account that was found is linked with another user of that
 * provider.
 */
type RefusalReason = 'unknown' | 'unverified' | 'suspended' | 'taken';

export interface ResolvedAccount {
  readonly account: Account;
  /** True if this sign-in has linked an existing account with the identity. */
  readonly isNewLink: boolean;
}

/** Returns the account, or why the user is refused. A refusal is recorded if an account was found. */
export type ResolveIdentity = (
  from: IdentitySource,
  person: ProviderIdentity,
  origin: Origin,
) => Promise<ResolvedAccount | RefusalReason>;

/** Links a signed-in user's account with an identity of a provider. `origin` has the session. @throws SessionEnded */
export type LinkIdentity = (
  account: Account,
  from: Pick<IdentitySource, 'id' | 'label'>,
  identity: Identity,
  origin: Origin,
  requireMayAdd: RequireMayAdd,
) => Promise<LinkOutcome>;

export function createResolveIdentity(parts: {
  readonly database: Database;
  readonly identities: Pick<Identities, 'use' | 'link'>;
  readonly activity: Activity;
}) {
  const { database, identities, activity } = parts;
  const refuse = async <Reason extends RefusalReason>(
    from: Pick<IdentitySource, 'id' | 'label'>,
    { issuer, subject }: Identity,
    { id: accountId }: Account,
    { reason, origin }: { reason: Reason; origin: Origin },
  ): Promise<Reason> => {
    const details = { reason, provider: from.id, provider_name: from.label, issuer, subject };
    await activity.recordRefused({
      action: 'sign_in_refused',
      actor: 'person',
      accountId,
      origin,
      details,
    });
    return reason;
  };

  const link = async (
    tx: Queries,
    accountId: string,
    from: Pick<IdentitySource, 'id' | 'label'>,
    { issuer, subject }: Identity,
    origin: Origin,
  ): Promise<LinkOutcome> => {
    const outcome = await identities.link(accountId, { issuer, subject }, tx);
    if (outcome !== 'linked') return outcome;
    const details = { provider: from.id, provider_name: from.label, issuer, subject };
    await activity.record({ action: 'identity_linked', actor: 'person', accountId, origin, details }, tx);
    return outcome;
  };

  async function findMatch(
    from: IdentitySource,
    person: ProviderIdentity,
    queries: Queries = database,
  ): Promise<Account | undefined> {
    if (from.match === 'none') return undefined;
    const { externalId, verifiedEmail } = await person.claims();
    const isById = from.match === 'external_id';
    const value = isById ? externalId : verifiedEmail;
    // Refuse control characters: no external id has any, and PostgreSQL throws for a NUL byte.
    if (value === undefined || value === '' || /\p{C}/u.test(value)) return undefined;
    const [row] = await queries.query<AccountRow>(
      `${SELECT_ACCOUNTS} WHERE ${isById ? 'external_id' : 'email_key'} = $1`,
      [isById ? value : emailKey(value)],
    );
    if (!row) return undefined;
    // A similar address has the same key, but may be another mailbox.
    return isById || isSameMailbox(row.email, value) ? accountFrom(row) : undefined;
  }

  const resolveIdentity: ResolveIdentity = async (from, person, origin) => {
    const known = await identities.use(person);
    if (known) {
      const { account, isFirstUse } = known;
      return account.isSuspended
        ? refuse(from, person, account, { reason: 'suspended', origin })
        : { account, isNewLink: isFirstUse };
    }
    const found = await findMatch(from, person);
    if (found?.isSuspended) return refuse(from, person, found, { reason: 'suspended', origin });
    if (found) {
      const outcome = await lockedTransactionOf(database, found.id, async (tx) => {
        // Repeat the look-up under the lock, because the account's address or external id may have changed.
        const still = await findMatch(from, person, tx);
        return still?.id === found.id ? link(tx, found.id, from, person, origin) : 'unknown';
      });
      if (outcome === 'unknown') return outcome;
      return outcome === 'taken'
        ? refuse(from, person, found, { reason: 'taken', origin })
        : { account: found, isNewLink: outcome === 'linked' };
    }
    // Decide by the settings only, so that the answer does not reveal whether an account has this address.
    return from.match === 'verified_email' && (await person.claims()).hasUnverifiedEmail ? 'unverified' : 'unknown';
  };

  const linkIdentity: LinkIdentity = async (account, from, person, origin, requireMayAdd) => {
    const outcome = await lockedTransactionOf(database, account.id, async (tx) => {
      await requireMayAdd(tx);
      return link(tx, account.id, from, person, origin);
    });
    return outcome === 'taken' ? refuse(from, person, account, { reason: 'taken', origin }) : outcome;
  };

  return { resolveIdentity, linkIdentity };
}

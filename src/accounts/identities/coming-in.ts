/** Whose account it is that somebody comes in with from elsewhere: found, linked or opened. */
import { Refusal } from '../../refusal.ts';
import type { Alongside, Database } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import { displayName } from '../display-name.ts';
import { emailKey, normalizeEmail } from '../email.ts';
import type { Identities, Identity } from './identities.ts';

/** Where they come from, by its settings. */
export interface WayIn {
  readonly id: string;
  readonly label: string;
  readonly match: 'external_id' | 'verified_email' | 'none';
  readonly create: boolean;
}

/** Somebody whom the provider has let in. */
export interface Newcomer extends Identity {
  /** Asked where no link is known. */
  claims(): Promise<{
    readonly externalId: string | undefined;
    readonly verifiedEmail: string | undefined;
    readonly name: string | undefined;
  }>;
}

/**
 * Why somebody stays out. `unknown`: there is no account for them. `suspended`. `taken`: the account
 * that was found is linked with somebody else of that provider.
 */
export type StaysOut = 'unknown' | 'suspended' | 'taken';

/** @returns their account, or why they stay out, which is then recorded where it has one. */
export type ComeIn = (from: WayIn, person: Newcomer, origin: Origin) => Promise<Account | StaysOut>;

export interface ComeInParts {
  readonly database: Database;
  readonly accounts: Pick<AccountRegistry, 'add'>;
  readonly identities: Pick<Identities, 'use' | 'link'>;
  readonly activity: Activity;
}

export function createComeIn({ database, accounts, identities, activity }: ComeInParts): ComeIn {
  const refused = async (
    from: WayIn,
    { issuer, subject }: Identity,
    { id: accountId }: Account,
    { reason, origin }: { reason: StaysOut; origin: Origin },
  ): Promise<StaysOut> => {
    const details = { reason, provider: from.id, provider_name: from.label, issuer, subject };
    await activity.record({
      action: 'sign_in_refused',
      actor: 'person',
      accountId,
      origin,
      details,
    });
    return reason;
  };

  const linking =
    (from: WayIn, { issuer, subject }: Identity, origin: Origin): Alongside<Account> =>
    async (tx, { id: accountId }) => {
      const outcome = await identities.link(accountId, { issuer, subject }, tx);
      if (outcome === 'taken') throw new IdentityTaken();
      if (outcome === 'known') return;
      const details = { provider: from.id, provider_name: from.label, issuer, subject };
      await activity.record(
        { action: 'identity_linked', actor: 'person', accountId, origin, details },
        tx,
      );
    };

  async function matched(from: WayIn, person: Newcomer): Promise<Account | undefined> {
    if (from.match === 'none') return undefined;
    const { externalId, verifiedEmail } = await person.claims();
    const [column, value] =
      from.match === 'external_id'
        ? (['external_id', externalId] as const)
        : (['email', verifiedEmail && normalizeEmail(verifiedEmail)] as const);
    // PostgreSQL answers a NUL byte with an error, and nobody has one in such a place.
    if (value === undefined || value === '' || /\p{C}/u.test(value)) return undefined;
    const [row] = await database.query<AccountRow>(
      column === 'external_id'
        ? `${SELECT_ACCOUNTS} WHERE external_id = $1`
        : // Not by its key, which takes look-alikes for one: two such addresses may be two mailboxes.
          // Letter case of ASCII is all that may differ, and the account must own the address.
          `${SELECT_ACCOUNTS} WHERE email_key IS NOT NULL AND email_key = $2
            AND lower(email COLLATE "C") = lower($1::text COLLATE "C")`,
      column === 'external_id' ? [value] : [value, emailKey(value)],
    );
    return row && accountFrom(row);
  }

  async function opened(
    from: WayIn,
    person: Newcomer,
    origin: Origin,
  ): Promise<Account | 'overtaken' | undefined> {
    const { verifiedEmail, name } = await person.claims();
    if (verifiedEmail === undefined) return undefined;
    try {
      const link = linking(from, person, origin);
      return await accounts.add(
        { email: verifiedEmail, name: nameFor(name, verifiedEmail) },
        async (tx, account) => {
          const details = { provider: from.id, provider_name: from.label };
          const { id: accountId } = account;
          await activity.record(
            { action: 'account_added', actor: 'service', accountId, details },
            tx,
          );
          await link(tx, account);
        },
      );
    } catch (error) {
      if (error instanceof IdentityTaken) return 'overtaken';
      if (!(error instanceof Refusal)) throw error;
      // Somebody has the address: there is never a second account for it.
      return error.code === 'email_taken' ? 'overtaken' : undefined;
    }
  }

  return async (from, person, origin) => {
    const linked = await identities.use(person);
    if (linked) {
      return linked.isSuspended
        ? refused(from, person, linked, { reason: 'suspended', origin })
        : linked;
    }
    const found = await matched(from, person);
    if (found?.isSuspended) return refused(from, person, found, { reason: 'suspended', origin });
    if (found) {
      try {
        const link = linking(from, person, origin);
        await database.transaction((tx) => link(tx, found));
        return found;
      } catch (error) {
        if (!(error instanceof IdentityTaken)) throw error;
        return refused(from, person, found, { reason: 'taken', origin });
      }
    }
    if (!from.create) return 'unknown';
    const account = await opened(from, person, origin);
    if (account !== 'overtaken') return account ?? 'unknown';
    // By their own second click, it may be: then the link is there now.
    const now = await identities.use(person);
    return now && !now.isSuspended ? now : 'unknown';
  };
}

/** Thrown inside of a transaction, so that nothing of it is kept. */
class IdentityTaken extends Error {}

/** Names that pages cannot show give way to the address. */
function nameFor(name: string | undefined, email: string): string {
  try {
    return displayName(name ?? email);
  } catch (error) {
    if (error instanceof Refusal) return email;
    throw error;
  }
}

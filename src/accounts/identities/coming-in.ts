/** Whose account it is that somebody comes in with from elsewhere: found, linked or opened. */
import { Refusal } from '../../base/refusal.ts';
import { transactionOf } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import { displayName } from '../display-name.ts';
import { emailKey, isSameMailbox, normalizeEmail } from '../email.ts';
import type { TakenNames } from '../organizations/taken-names.ts';
import type { Identities, Identity, LinkOutcome } from './identities.ts';

/** Where they come from, by its settings. */
export interface WayIn {
  readonly id: string;
  readonly label: string;
  readonly match: 'external_id' | 'verified_email' | 'none';
  readonly create: boolean;
}

export interface Newcomer extends Identity {
  /** Asked where no link is known. */
  claims(): Promise<{
    readonly externalId: string | undefined;
    readonly verifiedEmail: string | undefined;
    readonly hasUnverifiedEmail: boolean;
    readonly name: string | undefined;
  }>;
}

/**
 * Why a person is not let in. `unknown`: there is no account for them. `unverified`: the provider has
 * not verified their address, so no account was looked for by it. `suspended`. `taken`: the account
 * that was found is linked with another person of that provider.
 */
type StaysOut = 'unknown' | 'unverified' | 'suspended' | 'taken';

interface CameIn {
  readonly account: Account;
  /** The account was there before, and this is the first sign-in to it with this identity. */
  readonly isNewLink: boolean;
}

/** @returns their account, or why they stay out, which is then recorded where it has one. */
export type ComeIn = (from: WayIn, person: Newcomer, origin: Origin) => Promise<CameIn | StaysOut>;

/**
 * Links the account of somebody who is signed in, and was let in there as well.
 *
 * @param origin with their session here.
 * @throws SessionEnded
 */
export type LinkTo = (
  account: Account,
  from: Pick<WayIn, 'id' | 'label'>,
  identity: Identity,
  origin: Origin,
) => Promise<LinkOutcome>;

export interface ComeInParts {
  readonly database: Database;
  readonly accounts: Pick<AccountRegistry, 'add'>;
  readonly identities: Pick<Identities, 'use' | 'link'>;
  readonly activity: Activity;
  readonly takenNames: TakenNames;
}

export function createComeIn(parts: ComeInParts): {
  readonly comeIn: ComeIn;
  readonly linkTo: LinkTo;
} {
  const { database, accounts, identities, activity, takenNames } = parts;
  const refused = async <Reason extends StaysOut>(
    from: Pick<WayIn, 'id' | 'label'>,
    { issuer, subject }: Identity,
    { id: accountId }: Account,
    { reason, origin }: { reason: Reason; origin: Origin },
  ): Promise<Reason> => {
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

  const linked = async (
    tx: Queries,
    accountId: string,
    { from, person: { issuer, subject }, origin }: Linking,
  ): Promise<LinkOutcome> => {
    const outcome = await identities.link(accountId, { issuer, subject }, tx);
    if (outcome !== 'linked') return outcome;
    const details = { provider: from.id, provider_name: from.label, issuer, subject };
    await activity.record(
      { action: 'identity_linked', actor: 'person', accountId, origin, details },
      tx,
    );
    return outcome;
  };

  async function matched(from: WayIn, person: Newcomer): Promise<Account | undefined> {
    if (from.match === 'none') return undefined;
    const { externalId, verifiedEmail } = await person.claims();
    const isById = from.match === 'external_id';
    const value = isById ? externalId : verifiedEmail;
    // PostgreSQL answers a NUL byte with an error, and nobody has one in such a place.
    if (value === undefined || value === '' || /\p{C}/u.test(value)) return undefined;
    const [row] = await database.query<AccountRow>(
      `${SELECT_ACCOUNTS} WHERE ${isById ? 'external_id' : 'email_key'} = $1`,
      [isById ? value : emailKey(value)],
    );
    if (!row) return undefined;
    // The key takes look-alikes for one address, but they may be two mailboxes.
    return isById || isSameMailbox(row.email, value) ? accountFrom(row) : undefined;
  }

  async function opened(
    from: WayIn,
    person: Newcomer,
    origin: Origin,
  ): Promise<Account | 'overtaken' | undefined> {
    const { verifiedEmail, name: claimed } = await person.claims();
    // A normalized address may be another mailbox, which the provider did not verify.
    if (verifiedEmail === undefined || normalizeEmail(verifiedEmail) !== verifiedEmail) {
      return undefined;
    }
    const named = nameFor(claimed, verifiedEmail);
    // People choose their names at many providers, and pages name them as owners of clients.
    const isTaken = await takenNames.isTaken(database, named, undefined);
    const name = isTaken ? verifiedEmail : named;
    try {
      return await accounts.add({ email: verifiedEmail, name }, async (tx, account) => {
        const details = { provider: from.id, provider_name: from.label };
        const { id: accountId } = account;
        await activity.record(
          { action: 'account_added', actor: 'service', accountId, details },
          tx,
        );
        const outcome = await linked(tx, accountId, { from, person, origin });
        if (outcome === 'taken') throw new IdentityTaken();
      });
    } catch (error) {
      if (error instanceof IdentityTaken) return 'overtaken';
      if (!(error instanceof Refusal)) throw error;
      // Somebody has the address: there is never a second account for it.
      return error.code === 'email_taken' ? 'overtaken' : undefined;
    }
  }

  const comeIn: ComeIn = async (from, person, origin) => {
    const known = await identities.use(person);
    if (known) {
      const { account, isFirstUse } = known;
      return account.isSuspended
        ? refused(from, person, account, { reason: 'suspended', origin })
        : { account, isNewLink: isFirstUse };
    }
    const found = await matched(from, person);
    if (found?.isSuspended) return refused(from, person, found, { reason: 'suspended', origin });
    if (found) {
      const outcome = await transactionOf(database, found.id, (tx) =>
        linked(tx, found.id, { from, person, origin }),
      );
      return outcome === 'taken'
        ? refused(from, person, found, { reason: 'taken', origin })
        : { account: found, isNewLink: outcome === 'linked' };
    }
    // The answer must not depend on whether an account has this address.
    const usesEmail = from.create || from.match === 'verified_email';
    const isUnverified = usesEmail && (await person.claims()).hasUnverifiedEmail;
    if (!from.create || isUnverified) return isUnverified ? 'unverified' : 'unknown';
    const account = await opened(from, person, origin);
    if (account !== 'overtaken') return account ? { account, isNewLink: false } : 'unknown';
    // By their own second click, it may be: then the link is there now.
    const now = await identities.use(person);
    return now && !now.account.isSuspended ? { account: now.account, isNewLink: false } : 'unknown';
  };

  const linkTo: LinkTo = async (account, from, person, origin) => {
    const outcome = await transactionOf(database, account.id, (tx) =>
      linked(tx, account.id, { from, person, origin }),
    );
    return outcome === 'taken'
      ? refused(from, person, account, { reason: 'taken', origin })
      : outcome;
  };

  return { comeIn, linkTo };
}

interface Linking {
  readonly from: Pick<WayIn, 'id' | 'label'>;
  readonly person: Identity;
  readonly origin: Origin;
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

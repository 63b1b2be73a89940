/** Explains an account, and what signs its user in: a session, a passkey, a one-time link. */
import type { Account } from '../../accounts/account.ts';
import { browserInWords } from '../../accounts/browser-names.ts';
import type { KeptLink } from '../../accounts/passwords/links.ts';
import { type RecordedSession, sessionId } from '../../accounts/session-list.ts';
import { systemClock } from '../../base/clock.ts';
import { waysInOf, wayWords } from '../accounts/accounts.ts';
import { activeAmong } from '../accounts/sessions.ts';
import type { Registries } from '../registries.ts';
import { accountSuspended, atSeconds, by } from './credentials.ts';
import type { Explanation } from './explanation.ts';

export async function explainAccount(registries: Registries, id: string): Promise<Explanation> {
  const account = await registries.accounts.find(id);
  if (account) return accountState(registries, account);
  const question = { accountId: id, action: 'account_deleted', limit: 1 } as const;
  const [deleted] = await registries.audit.find(question);
  if (!deleted) return { state: 'unknown', why: 'There is no account with this ID.' };
  return {
    state: 'revoked',
    why: `The account was deleted${by(deleted.actor)}, for good.`,
    account: { id },
    revokedAt: deleted.at,
  };
}

export async function explainEmail(registries: Registries, email: string): Promise<Explanation> {
  const account = await registries.accounts.findByEmail(email);
  if (account) return accountState(registries, account);
  return {
    state: 'unknown',
    why: 'No account has this email address.',
    remedy: '`accounts list --match` finds part of an address, and names.',
  };
}

async function accountState(registries: Registries, account: Account): Promise<Explanation> {
  const facts = { account, issuedAt: account.createdAt };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (account.isEmailTaken) {
    return {
      ...facts,
      state: 'address_taken',
      why: 'Another account has the same email address, so nobody signs in to this one.',
      remedy: `\`accounts update ${account.id} --new-email …\` gives it an address of its own.`,
    };
  }
  const waysIn = await waysInOf(account, registries);
  if (waysIn.length === 0) {
    return {
      ...facts,
      state: 'no_password_yet',
      why: 'The person has nothing to sign in with yet.',
      remedy: `\`accounts invite ${account.email}\` makes a link.`,
    };
  }
  const why = `The person signs in with ${wayWords({ waysIn })}.`;
  return { ...facts, state: 'active', why, remedy: 'See `accounts show`.' };
}

/** @param id the public ID, as `sessions list` shows it */
export async function explainSession(registries: Registries, id: string): Promise<Explanation> {
  const session = await registries.sessionList.find(id);
  return session ? sessionState(registries, session) : unknownSession;
}

/** Explains what only its holder has: the token of a one-time link, a cookie, or part of a URL. */
export async function explainOpaque(registries: Registries, value: string): Promise<Explanation> {
  const link = await registries.passwordLinks.look(value);
  if (link) return { kind: 'link', ...(await linkState(registries, link)) };
  const store = await registries.tokenStore();
  const cookie = await store.read<{ readonly uid: string }>('session', value);
  const session = await registries.sessionList.find(cookie?.data.uid ?? value);
  if (session) return { kind: 'session', ...(await sessionState(registries, session)) };
  const page = await store.read<{ readonly params?: { readonly client_id?: string } }>(
    'interaction',
    value,
  );
  if (!page) return unknownOpaque;
  const clientId = page.data.params?.client_id;
  return {
    kind: 'sign_in_page',
    state: 'active',
    why: 'A page on which a person signs in or approves a client.',
    ...(clientId && { client: (await registries.clients.find(clientId)) ?? { id: clientId } }),
    expiresAt: atSeconds(page.expiresAt),
  };
}

const unknownOpaque: Explanation = {
  state: 'unknown',
  why:
    'No one-time link, session or sign-in page is known by it. A link that was used or replaced is ' +
    'not kept, nor is a session that was signed out in its own browser.',
  remedy: '`accounts invite` makes another link; `sessions list` shows the sessions of a person.',
};

const unknownSession: Explanation = {
  state: 'unknown',
  why: 'No session is known by this. Or it ended long ago, or a character of it is wrong.',
  remedy: '`sessions list` shows the sessions of a person.',
};

async function sessionState(
  registries: Registries,
  session: RecordedSession,
): Promise<Explanation> {
  const { uid, accountId, origin, begunAt, generation } = session;
  const { accounts, audit } = registries;
  const account = await accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: begunAt };
  const where = `${browserInWords(origin.browser)} at ${origin.address}`;
  if (!account) return { ...facts, state: 'revoked', why: 'The account of its person is gone.' };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (account.endedSessions.includes(uid)) {
    const question = { accountId, action: 'signed_out_elsewhere', limit: MAX_ENDS } as const;
    const ends = await audit.find(question);
    const end = ends.find(({ details }) => details.session_id === sessionId(session));
    const why = `The session in ${where} was ended${end ? by(end.actor) : ''}.`;
    return { ...facts, state: 'revoked', why, ...(end && { revokedAt: end.at }) };
  }
  if (generation < account.sessionGeneration) {
    const why = `The session in ${where} was ended with all others of the person: signed out everywhere, or a new password.`;
    const remedy = `\`audit --account ${account.email}\` says when and by whom.`;
    return { ...facts, state: 'revoked', why, remedy };
  }
  const active = (await activeAmong(registries, [session])).get(uid);
  if (!active) {
    const why = `The session in ${where} was signed out there, or was not used in time.`;
    return { ...facts, state: 'expired', why };
  }
  return {
    ...facts,
    state: 'active',
    why: `The person is signed in with ${where}.`,
    remedy: `\`sessions end ${sessionId(session)}\` ends it.`,
    expiresAt: active.endsAt,
    lastUsedAt: active.lastSeen,
  };
}

/** Far more sessions than one person ends one by one while a session lasts. */
const MAX_ENDS = 1_000;

export async function explainPasskey(
  { passkeys, accounts, audit, settings }: Registries,
  id: string,
): Promise<Explanation> {
  const passkey = await passkeys.find(id);
  if (!passkey) {
    const removals = await audit.find({ action: 'passkey_removed', limit: MAX_ENDS });
    const removed = removals.find(({ details }) => details.passkey_id === id);
    if (!removed) return { state: 'unknown', why: 'There is no passkey with this ID.' };
    const { accountId = '', actor, at, details } = removed;
    return {
      state: 'revoked',
      why: `The passkey “${details.passkey_name}” was removed${by(actor)}.`,
      account: (await accounts.find(accountId)) ?? { id: accountId },
      revokedAt: at,
    };
  }
  const { accountId, name, createdAt, lastUsedAt } = passkey;
  const account = await accounts.find(accountId);
  const facts = {
    account: account ?? { id: accountId },
    issuedAt: createdAt,
    ...(lastUsedAt && { lastUsedAt }),
  };
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (!settings.signIn.passkeys) {
    const why = `Nobody signs in with the passkey “${name}”: passkeys are off.`;
    return { ...facts, state: 'off', why, remedy: '`sign_in.passkeys` turns them on.' };
  }
  return { ...facts, state: 'active', why: `The person signs in with the passkey “${name}”.` };
}

const PURPOSES = {
  invitation: 'an invitation of the operator’s',
  forgotten: 'a link of “Forgot your password?”',
  confirmed: 'a link for a password, after the person confirmed it with a provider',
} as const;

async function linkState({ accounts }: Registries, link: KeptLink): Promise<Explanation> {
  const { accountId, purpose, createdAt, expiresAt } = link;
  const account = await accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: createdAt, expiresAt };
  const what = `It is ${PURPOSES[purpose]}`;
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (expiresAt.getTime() <= systemClock()) {
    const remedy = '`accounts invite` makes another one.';
    return { ...facts, state: 'expired', why: `${what}, and was not used in time.`, remedy };
  }
  return { ...facts, state: 'active', why: `${what}, and was not used yet.` };
}

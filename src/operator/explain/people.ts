/** Explains an account, or a session, a passkey or a one-time link of its user. */
import type { Account } from '../../accounts/account.ts';
import { describeBrowser } from '../../accounts/browser-names.ts';
import type { KeptLink } from '../../accounts/password-links/password-links.ts';
import { type RecordedSession, sessionId } from '../../accounts/session-list.ts';
import { systemClock } from '../../base/clock.ts';
import { listSignInMethods, methodWords } from '../accounts/accounts.ts';
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
    remedy: '`accounts list --match` searches for part of an address or name.',
  };
}

async function accountState(registries: Registries, account: Account): Promise<Explanation> {
  const facts = { account, issuedAt: account.createdAt };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  const signInMethods = await listSignInMethods(account, registries);
  if (signInMethods.length === 0) {
    return {
      ...facts,
      state: 'no_password_yet',
      why: 'The person has no sign-in method yet.',
      remedy: `\`accounts invite ${account.email}\` creates a one-time link.`,
    };
  }
  const why = `The person signs in with ${methodWords({ signInMethods })}.`;
  return { ...facts, state: 'active', why, remedy: 'See `accounts show`.' };
}

/** @param id the public ID, as `sessions list` shows it */
export async function explainSession(registries: Registries, id: string): Promise<Explanation> {
  const session = await registries.sessionList.find(id);
  return session ? sessionState(registries, session) : unknownSession;
}

/** Explains a value that only its user has: a one-time token, a cookie, or part of a URL. */
export async function explainOpaque(registries: Registries, value: string): Promise<Explanation> {
  const link = await registries.passwordLinks.look(value);
  if (link) return { kind: 'link', ...(await linkState(registries, link)) };
  const store = await registries.tokenStore();
  const cookie = await store.read<{ readonly uid: string }>('session', value);
  const session = await registries.sessionList.find(cookie?.data.uid ?? value);
  if (session) return { kind: 'session', ...(await sessionState(registries, session)) };
  const page = await store.read<{ readonly params?: { readonly client_id?: string } }>('interaction', value);
  if (!page) return unknownOpaque;
  const clientId = page.data.params?.client_id;
  return {
    kind: 'sign_in_page',
    state: 'active',
    why: 'A page where a person signs in or approves a client.',
    ...(clientId && { client: (await registries.clients.find(clientId)) ?? { id: clientId } }),
    expiresAt: atSeconds(page.expiresAt),
  };
}

const unknownOpaque: Explanation = {
  state: 'unknown',
  why:
    'No one-time link, session or sign-in page has this value. Links that were used or replaced are not stored, and ' +
    'neither are sessions that were signed out in their own browser.',
  remedy: '`accounts invite` creates another link; `sessions list` shows the sessions of a person.',
};

const unknownSession: Explanation = {
  state: 'unknown',
  why: 'No session has this ID. Either it ended long ago, or one of the characters is wrong.',
  remedy: '`sessions list` shows the sessions of a person.',
};

async function sessionState(registries: Registries, session: RecordedSession): Promise<Explanation> {
  const { uid, accountId, origin, begunAt, generation } = session;
  const { accounts, audit } = registries;
  const account = await accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: begunAt };
  const where = `${describeBrowser(origin.browser)} at ${origin.address}`;
  if (!account) return { ...facts, state: 'revoked', why: 'The account of the person was deleted.' };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (account.endedSessions.includes(uid)) {
    const question = { accountId, action: 'signed_out_elsewhere', limit: MAX_ENDS } as const;
    const ends = await audit.find(question);
    const end = ends.find(({ details }) => details.session_id === sessionId(session));
    const why = `The session in ${where} was ended${end ? by(end.actor) : ''}.`;
    return { ...facts, state: 'revoked', why, ...(end && { revokedAt: end.at }) };
  }
  if (generation < account.sessionGeneration) {
    const why = `The session in ${where} was ended with all others of the person, or of all people: signed out everywhere, or a new password.`;
    const remedy = `\`audit --account ${account.email}\` or \`audit --action signed_out_everywhere\` shows when and by whom.`;
    return { ...facts, state: 'revoked', why, remedy };
  }
  const active = (await activeAmong(registries, [session])).get(uid);
  if (!active) {
    const why = `The session in ${where} was signed out there, or has expired.`;
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

/** Maximum to search: far more sessions than one person ends within a session's lifetime. */
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
    const why = `The passkey “${name}” cannot be used: passkeys are turned off.`;
    return { ...facts, state: 'off', why, remedy: '`sign_in.passkeys` turns them on.' };
  }
  return { ...facts, state: 'active', why: `The person signs in with the passkey “${name}”.` };
}

const PURPOSES = {
  invitation: 'an invitation by the operator',
  forgotten: 'a “Forgot your password?” link',
  confirmed: 'a link to set a password, created after the person confirmed it with a provider',
} as const;

async function linkState({ accounts }: Registries, link: KeptLink): Promise<Explanation> {
  const { accountId, purpose, createdAt, expiresAt } = link;
  const account = await accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: createdAt, expiresAt };
  const what = `This is ${PURPOSES[purpose]}`;
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (expiresAt.getTime() <= systemClock()) {
    const remedy = '`accounts invite` creates another one.';
    return { ...facts, state: 'expired', why: `${what}. The link expired unused.`, remedy };
  }
  return { ...facts, state: 'active', why: `${what}. The link has not been used yet.` };
}

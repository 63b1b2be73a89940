/** Answers about people, clients, places and what belongs to them; tokens have their own file. */
import { limitSentence } from '../../accounts/access/access-limit.ts';
import type { Account } from '../../accounts/account.ts';
import { CAUSES, type Details } from '../../accounts/activity/activity-words.ts';
import type { ApiKey } from '../../accounts/api-keys/api-key.ts';
import { describeBrowser } from '../../accounts/browser-names.ts';
import type { PlaceKind } from '../../accounts/organizations/places.ts';
import type { KeptLink } from '../../accounts/password-links/password-links.ts';
import { type RecordedSession, sessionId } from '../../accounts/session-list.ts';
import { systemClock } from '../../base/clock.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import { findSecret, refusedFrom } from '../../clients/client-secrets.ts';
import { countText } from '../../storage/pages.ts';
import { inEnglish } from '../../texts/texts.ts';
import { accountReport, listSignInMethods, methodWords } from '../accounts/accounts.ts';
import { activeAmong } from '../accounts/sessions.ts';
import { clientReport } from '../clients/client-report.ts';
import { membersReport } from '../places/memberships.ts';
import { accessText } from '../places/places.ts';
import type { Registries } from '../registries.ts';
import type { Answer } from './answer.ts';
import {
  accountSuspended,
  clientSuspended,
  endIn,
  entryText,
  type Facts,
  reachesNothing,
  standingOf,
  unknownValue,
} from './standing.ts';

/** How many audit entries the answer about a client or a person has. */
const LOG_LENGTH = 5;

const isPast = (time: Date): boolean => time.getTime() <= systemClock();

const unknown = (what: string, remedy?: string): Answer => ({
  state: 'unknown',
  why: `There is no ${what}.`,
  ...(remedy !== undefined && { remedy }),
});

export async function showClient(registries: Registries, clientId: string): Promise<Answer> {
  const client = await registries.clients.find(clientId);
  const log = await registries.audit.find({ clientId, limit: LOG_LENGTH });
  if (client) return { ...clientState(client, {}), content: clientReport(client), log };
  const end = await endIn(registries, { clientId, action: 'client_deleted' });
  return end ? { ...end, log } : unknownValue('');
}

const clientState = (client: Client, facts: Facts): Answer =>
  client.isSuspended
    ? { ...facts, client, ...clientSuspended(client) }
    : { ...facts, client, state: 'active', why: 'This value is valid.' };

export async function showClientSecret(registries: Registries, value: string): Promise<Answer> {
  const lastFour = value.slice(-4);
  const clientId = await registries.clients.findClientIdBySecret(value);
  const client = clientId === undefined ? undefined : await registries.clients.find(clientId);
  const secret = findSecret(client, value);
  if (client && secret) {
    const { createdAt, lastUsedAt } = secret;
    const facts = { lastFour, issuedAt: createdAt, ...(lastUsedAt && { lastUsedAt }) };
    const until = refusedFrom(client, secret, registries.settings.leaks.secretGraceSeconds);
    if (!until) return clientState(client, facts);
    const when = `${isPast(until) ? 'refused since' : 'accepted until'} ${until.toISOString()}`;
    return {
      ...clientState(client, facts),
      ...(isPast(until) && { state: 'revoked', revokedAt: until }),
      why: `The secret was found in public: it is ${when}.`,
      remedy: 'Add another secret, and configure the client with it.',
    };
  }
  const end =
    (await endIn(registries, { end: { action: 'client_secret_removed', details: { last_four: lastFour } } })) ??
    (await endIn(registries, { end: { action: 'client_renewed', details: { ended_secrets: [lastFour] } } }));
  if (!end) return { ...unknownValue('Removed client secrets are not stored.'), lastFour };
  return {
    ...end,
    why: `No client has this secret. About one with the same last characters, the audit log says: ${end.why}`,
    remedy: 'Configure the client with its newer secret.',
    lastFour,
  };
}

export async function showApiKey(registries: Registries, value: string): Promise<Answer> {
  const key = await registries.apiKeys.findKept(value);
  const lastFour = value.slice(-4);
  const answer = await apiKeyAnswer(registries, key, { last_four: lastFour });
  if (key) return answer;
  if (answer.state === 'unknown') return { ...answer, lastFour };
  return {
    ...answer,
    why: `No account has this key. About one with the same last characters, the audit log says: ${answer.why}`,
  };
}

export async function showApiKeyId(registries: Registries, id: string): Promise<Answer> {
  return apiKeyAnswer(registries, await registries.apiKeys.findById(id), { api_key_id: id });
}

const NEW_KEY = 'The person can create a new one on the profile page.';

/** @param details of the audit entry, if the key was revoked */
async function apiKeyAnswer(registries: Registries, key: ApiKey | undefined, details: Details): Promise<Answer> {
  if (key) return apiKeyState(registries, key);
  const end = await endIn(registries, { end: { action: 'api_key_revoked', details } });
  return end ? { ...end, remedy: NEW_KEY } : unknownValue('A key is deleted a month after it expires.');
}

async function apiKeyState(registries: Registries, key: ApiKey): Promise<Answer> {
  const { accountId, createdAt, expiresAt, lastUsedAt, lastFour, name } = key;
  const account = await registries.accounts.find(accountId);
  const facts = {
    lastFour,
    account: account ?? { id: accountId },
    issuedAt: createdAt,
    ...(expiresAt && { expiresAt }),
    ...(lastUsedAt && { lastUsedAt }),
  };
  if (expiresAt && isPast(expiresAt)) {
    return { ...facts, state: 'expired', why: `The key “${name}” has expired.`, remedy: NEW_KEY };
  }
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  const all = await registries.access.accessOf({ accountId });
  const allowing = await registries.access.accessThrough(accountId, {});
  const refusing = all.filter(({ id }) => allowing.every((one) => one.id !== id));
  const sentences = [
    `The key “${name}” is valid: introspection answers active.`,
    reachesNothing('Organizations allow no API keys', refusing),
    limitSentence(key),
  ];
  const remedy = `\`api-keys revoke ${key.id}\` revokes the key.`;
  return { ...facts, state: 'active', why: sentences.filter(Boolean).join(' '), remedy };
}

export async function showAccount(registries: Registries, id: string): Promise<Answer> {
  const account = await registries.accounts.find(id);
  if (account) return accountState(registries, account);
  const log = await registries.audit.find({ accountId: id, limit: LOG_LENGTH });
  const end = await endIn(registries, { accountId: id, action: 'account_deleted' });
  return end ? { ...end, log } : unknown('account with this ID');
}

export async function showEmail(registries: Registries, email: string): Promise<Answer> {
  const account = await registries.accounts.findByEmail(email);
  if (account) return accountState(registries, account);
  return unknown('account with this email address', '`accounts list --match` searches for part of an address or name.');
}

async function accountState(registries: Registries, account: Account): Promise<Answer> {
  const log = await registries.audit.find({ accountId: account.id, limit: LOG_LENGTH });
  const content = await accountReport(registries, account);
  const facts = { account, issuedAt: account.createdAt, content, log };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  const signInMethods = await listSignInMethods(account, registries);
  if (signInMethods.length > 0) {
    return { ...facts, state: 'active', why: `The person signs in with ${methodWords({ signInMethods })}.` };
  }
  const remedy = `\`accounts invite ${account.email}\` creates a one-time link.`;
  return { ...facts, state: 'no_password_yet', why: 'The person has no sign-in method yet.', remedy };
}

export const showPlace =
  (kind: PlaceKind) =>
  async (registries: Registries, id: string): Promise<Answer> => {
    const { organizations, access } = registries;
    const place = await organizations.find(kind, id).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
    });
    if (!place) {
      const question = { end: { action: `${kind}_removed`, details: { [`${kind}_id`]: id } } } as const;
      return (await endIn(registries, question, `${kind}_name`)) ?? unknown(`${kind} with this ID`);
    }
    const { warehouses, ...lost } = await organizations.dependents(kind, id);
    const content = await membersReport(registries, kind, id);
    const { name, organization } = place;
    const about = { name, content, state: 'active' } as const;
    if (kind === 'warehouse') {
      const why = `${accessText(lost)} have explicit rights in it; owners and admins of its organization have all rights.`;
      return { ...about, why, organization };
    }
    const { items, more } = await access.clientBlocks.list({ limit: 1 }, { organizationId: id });
    const size = items.length + more;
    const blocks = size > 0 ? ` The organization blocks ${countText(size)} clients: see \`blocks list\`.` : '';
    return { ...about, why: `The organization has ${accessText(lost)}, and ${warehouses} warehouses.${blocks}` };
  };

/** @param id account ID and client ID, as `connections list` shows them */
export async function showConnection(registries: Registries, id: string): Promise<Answer> {
  const [accountId = '', clientId = ''] = id.split('/');
  const { connections } = registries;
  return standingOf(registries, { accountId, clientId }, {}, async () => {
    const [connected] = (await connections.listBoth({ accountId, clientId })).items;
    if (connected) {
      const { connectedAt: issuedAt, lastUsedAt } = connected;
      const remedy = `\`connections end ${id}\` ends it.`;
      const why = 'The person has connected the client.';
      return { state: 'active', why, remedy, issuedAt, ...(lastUsedAt && { lastUsedAt }) };
    }
    const end = await connections.endOf(accountId, clientId);
    if (!end) return { state: 'unknown', why: 'The person never connected the client.' };
    return { state: 'revoked', why: `The connection was ended: ${inEnglish(CAUSES[end.cause])}.`, revokedAt: end.at };
  });
}

export async function showRequest(registries: Registries, id: string): Promise<Answer> {
  const problem = await registries.clientProblems.ofRequest(id);
  if (problem) {
    const { step, error, cause, clientId, clientName, at } = problem;
    return {
      state: 'refused',
      why: `The ${step} request of the client was answered with ${error}: ${cause}`,
      remedy: `\`problems list --client ${clientId}\` shows all problems of the client.`,
      client: (await registries.clients.find(clientId)) ?? { id: clientId, name: clientName },
      issuedAt: at,
    };
  }
  const [done] = await registries.audit.find({ requestId: id, limit: 1 });
  if (done) {
    const { accountId, at } = done;
    return {
      state: 'done',
      why: `The audit log has this request: ${entryText(done)}`,
      remedy: `\`audit --request ${id}\` shows everything that it changed.`,
      ...(accountId !== undefined && { account: { id: accountId } }),
      issuedAt: at,
    };
  }
  return {
    state: 'unknown',
    why:
      'The stores have only requests that changed something, and for each client the last ' +
      '100 refused requests of 7 days.',
    remedy: `Search the log for ${id}: the log has a line for each request.`,
  };
}

const SESSIONS = '`sessions list` shows the sessions of a person.';

/** @param id the public ID, as `sessions list` shows it */
export async function showSession(registries: Registries, id: string): Promise<Answer> {
  const session = await registries.sessionList.find(id);
  if (session) return sessionState(registries, session);
  return unknown('session with this ID: it ended long ago, or one of the characters is wrong', SESSIONS);
}

/** Answers about the token of a one-time link, or a session in the URL of a page. */
export async function showOpaque(registries: Registries, value: string): Promise<Answer> {
  const link = await registries.passwordLinks.look(value);
  if (link) return { kind: 'link', ...(await linkState(registries, link)) };
  const session = await registries.sessionList.find(value);
  if (session) return { kind: 'session', ...(await sessionState(registries, session)) };
  const remedy = `\`accounts invite\` creates another link; ${SESSIONS}`;
  const why = 'one-time link or session with this value. Used links are not stored, and session cookies not looked up';
  return unknown(why, remedy);
}

async function sessionState(registries: Registries, session: RecordedSession): Promise<Answer> {
  const { uid, accountId, origin, begunAt, generation } = session;
  const account = await registries.accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: begunAt };
  const where = `The session in ${describeBrowser(origin.browser)} at ${origin.address}`;
  if (!account) return { ...facts, state: 'revoked', why: 'The account of the person was deleted.' };
  if (account.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (account.endedSessions.includes(uid)) {
    const question = {
      accountId,
      end: { action: 'signed_out_elsewhere', details: { session_id: sessionId(session) } },
    } as const;
    const end = await endIn(registries, question);
    return { ...facts, ...end, state: 'revoked', why: `${where} was ended. ${end?.why ?? ''}`.trim() };
  }
  if (generation < account.sessionGeneration) {
    const why = `${where} was ended with all others of the person, or of all people: signed out everywhere, or a new password.`;
    const remedy = `\`audit --account ${account.email}\` or \`audit --action signed_out_everywhere\` shows when and by whom.`;
    return { ...facts, state: 'revoked', why, remedy };
  }
  const active = (await activeAmong(registries, [session])).get(uid);
  if (!active) return { ...facts, state: 'expired', why: `${where} was signed out there, or has expired.` };
  const remedy = `\`sessions end ${sessionId(session)}\` ends it.`;
  const times = { expiresAt: active.endsAt, lastUsedAt: active.lastSeen };
  return { ...facts, ...times, state: 'active', why: `${where} is signed in.`, remedy };
}

export async function showPasskey(registries: Registries, id: string): Promise<Answer> {
  const passkey = await registries.passkeys.find(id);
  if (!passkey) {
    const end = await endIn(registries, { end: { action: 'passkey_removed', details: { passkey_id: id } } });
    return end ?? unknown('passkey with this ID');
  }
  const { accountId, name, createdAt, lastUsedAt } = passkey;
  const account = await registries.accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: createdAt, ...(lastUsedAt && { lastUsedAt }) };
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (!registries.settings.signIn.passkeys) {
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

async function linkState({ accounts }: Registries, link: KeptLink): Promise<Answer> {
  const { accountId, purpose, createdAt, expiresAt } = link;
  const account = await accounts.find(accountId);
  const facts = { account: account ?? { id: accountId }, issuedAt: createdAt, expiresAt };
  const what = `This is ${PURPOSES[purpose]}`;
  if (account?.isSuspended) return { ...facts, ...accountSuspended(account) };
  if (!isPast(expiresAt)) return { ...facts, state: 'active', why: `${what}. The link has not been used yet.` };
  const remedy = '`accounts invite` creates another one.';
  return { ...facts, state: 'expired', why: `${what}. The link expired unused.`, remedy };
}

/** Looks up a value or ID of any kind: finds its record with the user and the client, or how it became invalid. */
import { limitSentence } from '../../accounts/access/access-limit.ts';
import type { Account } from '../../accounts/account.ts';
import type { ApiKey } from '../../accounts/api-keys/api-key.ts';
import { describeBrowser } from '../../accounts/browser-names.ts';
import type { PlaceKind } from '../../accounts/organizations/places.ts';
import type { KeptLink } from '../../accounts/password-links/password-links.ts';
import { type RecordedSession, sessionId } from '../../accounts/session-list.ts';
import { systemClock } from '../../base/clock.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import { findSecret, refusedFrom } from '../../clients/client-secrets.ts';
import { accountReport, listSignInMethods, methodWords } from '../accounts/accounts.ts';
import { activeAmong } from '../accounts/sessions.ts';
import { shownClient } from '../clients/client-report.ts';
import { showReport } from '../places/places.ts';
import type { Registries } from '../registries.ts';
import {
  type Answer,
  as,
  type EndQuestion,
  entryText,
  LOG_LENGTH,
  type Parties,
  reachesNothing,
  sentences,
  unknownValue,
  whatEnded,
  withParties,
} from './answer.ts';
import type { Kind } from './find.ts';
import { endedBy, findPresented, findToken, machineTokenState, type Presented, presentedState } from './tokens.ts';

const isPast = (time: Date): boolean => time.getTime() <= systemClock();

/** @param isAlone true if the text contains no other value */
type Show = (registries: Registries, value: string, isAlone: boolean) => Promise<Answer>;

interface Subject<Found> {
  find(registries: Registries, value: string): Promise<Found | undefined>;
  parties?(found: Found, value: string): Parties;
  answer(found: Found, registries: Registries, value: string, isAlone: boolean): Answer | Promise<Answer>;
  /** Returns queries for the audit log, which find out how a deleted record ended. */
  ends?(value: string): readonly EndQuestion[];
  /** The warning that a deleted secret was identified by only its last four characters. */
  readonly byLastFour?: string;
  readonly remedy?: string;
  readonly missing: Answer;
}

const subject =
  <Found>({ find, parties, answer, ends, byLastFour, remedy, missing }: Subject<Found>): Show =>
  async (registries, value, isAlone) => {
    const found = await find(registries, value);
    if (found) {
      const about = await answer(found, registries, value, isAlone);
      return withParties(registries, parties?.(found, value) ?? {}, about);
    }
    const lastFour = byLastFour === undefined ? undefined : value.slice(-4);
    for (const question of ends?.(value) ?? []) {
      const end = await whatEnded(registries, question);
      if (!end) continue;
      const { why } = end;
      const about = `${byLastFour} About one with the same last characters, the audit log says: ${why}`;
      return { ...end, remedy, ...(byLastFour !== undefined && { why: about, lastFour }) };
    }
    return { ...missing, lastFour };
  };

const none = (what: string, remedy?: string): Answer => ({ state: 'unknown', why: `There is no ${what}.`, remedy });

const PRESENTED = {
  parties: ({ record, ended }: Presented) => record ?? ended ?? {},
  answer: presentedState,
  missing: { state: 'malformed', why: 'The last characters of this value are wrong.' },
} as const;
const token = subject({ ...PRESENTED, find: findToken });

const NEW_KEY = 'The person can create a new API key on the profile page.';
const API_KEY = { parties: ({ accountId }: ApiKey) => ({ accountId }), answer: apiKeyState, remedy: NEW_KEY } as const;
const FORGOTTEN_KEY = 'A key is deleted a month after it expires.';

const SESSIONS = '`sessions list` shows the sessions of a person.';
const ofAccount = ({ id }: Account) => ({ accountId: id });

export const SUBJECTS: Readonly<Record<Kind, Show>> = {
  access_token: token,
  refresh_token: token,
  code: token,
  /** The public ID, which the log and introspection contain. */
  authorization: subject({ ...PRESENTED, find: findPresented }),

  machine_token: subject({
    find: async (registries, value) => (await registries.machineTokens()).find(value),
    parties: ({ clientId }) => ({ clientId }),
    answer: machineTokenState,
    missing: unknownValue('A machine access token is deleted when it expires or is revoked individually.'),
  }),

  client_secret: subject({
    async find({ clients }, value) {
      const id = await clients.findClientIdBySecret(value);
      const client = id === undefined ? undefined : await clients.find(id);
      const secret = findSecret(client, value);
      return client && secret && { client, secret };
    },
    parties: ({ client }) => ({ clientId: client.id }),
    answer({ client, secret }, { settings }) {
      const { createdAt, lastUsedAt, lastFour } = secret;
      const times = { issued_at: createdAt, last_used_at: lastUsedAt };
      const until = refusedFrom(client, secret, settings.leaks.secretGraceSeconds);
      if (!until) return { state: 'active', why: 'This value is valid.', lastFour, times };
      const isRefused = isPast(until);
      return {
        state: isRefused ? 'revoked' : 'active',
        why: `The secret was found in public: it is ${isRefused ? 'refused since' : 'accepted until'} ${until.toISOString()}.`,
        remedy: 'Add another secret, and configure the client with it.',
        lastFour,
        times: { ...times, revoked_at: isRefused ? until : undefined },
      };
    },
    ends: (value) => [
      { end: { action: 'client_secret_removed', details: { last_four: value.slice(-4) } } },
      { end: { action: 'client_renewed', details: { ended_secrets: [value.slice(-4)] } } },
    ],
    byLastFour: 'No client has this secret.',
    remedy: 'Configure the client with its newer secret.',
    missing: unknownValue('Removed client secrets are not stored.'),
  }),

  api_key: subject({
    ...API_KEY,
    find: ({ apiKeys }, value) => apiKeys.findKept(value),
    ends: (value) => [{ end: { action: 'api_key_revoked', details: { last_four: value.slice(-4) } } }],
    byLastFour: 'No account has this key.',
    missing: unknownValue(FORGOTTEN_KEY),
  }),
  api_key_id: subject({
    ...API_KEY,
    find: ({ apiKeys }, id) => apiKeys.findById(id),
    ends: (id) => [{ end: { action: 'api_key_revoked', details: { api_key_id: id } } }],
    missing: none(`API key with this ID. ${FORGOTTEN_KEY.slice(0, -1)}`),
  }),

  client_id: subject<Client>({
    find: ({ clients }, id) => clients.find(id),
    parties: ({ id }) => ({ clientId: id }),
    async answer(client, registries) {
      const log = await registries.audit.find({ clientId: client.id, limit: LOG_LENGTH });
      const content = await shownClient(registries, client);
      return { state: 'active', why: 'This value is valid.', content, log };
    },
    ends: (clientId) => [{ clientId, action: 'client_deleted' }],
    missing: unknownValue(),
  }),

  account: subject({
    find: ({ accounts }, id) => accounts.find(id),
    parties: ofAccount,
    answer: accountState,
    ends: (accountId) => [{ accountId, action: 'account_deleted' }],
    missing: none('account with this ID'),
  }),
  email: subject({
    find: ({ accounts }, email) => accounts.findByEmail(email),
    parties: ofAccount,
    answer: accountState,
    missing: none(
      'account with this email address',
      '`accounts list --match` searches for part of an address or name.',
    ),
  }),

  organization: place('organization'),
  warehouse: place(
    'warehouse',
    'If its organization was deleted, `audit --action organization_removed` has no entry of the warehouse itself.',
  ),

  /** An account ID and a client ID, as `connections list` prints them. */
  connection: connectionState,
  request: requestState,

  /** The public ID, which `sessions list` prints. */
  session: subject({
    find: ({ sessionList }, id) => sessionList.find(id),
    parties: ({ accountId }) => ({ accountId }),
    answer: sessionState,
    missing: none('session with this ID: it ended long ago, or one of the characters is wrong', SESSIONS),
  }),

  /** The token of a one-time link, or the ID of a session from the URL of a page. */
  opaque: subject({
    async find({ passwordLinks, sessionList }, value) {
      const link = await passwordLinks.look(value);
      const session = link ? undefined : await sessionList.find(value);
      return (link && { link }) ?? (session && { session });
    },
    parties: (found: { link: KeptLink; session?: undefined } | { session: RecordedSession; link?: undefined }) => ({
      accountId: (found.link ?? found.session).accountId,
    }),
    answer: async ({ link, session }, registries) =>
      link ? linkState(link) : { kind: 'session', ...(await sessionState(session, registries)) },
    missing: none(
      'one-time link or session with this value. Used links are not stored, and session cookies not looked up',
      `\`accounts invite\` creates another link; ${SESSIONS}`,
    ),
  }),

  passkey: subject({
    find: ({ passkeys }, id) => passkeys.find(id),
    parties: ({ accountId }) => ({ accountId }),
    answer({ name, createdAt, lastUsedAt }, { settings }) {
      const times = { issued_at: createdAt, last_used_at: lastUsedAt };
      if (settings.signIn.passkeys) {
        return as('active', `The person signs in with the passkey “${name}”.`, undefined, times);
      }
      const why = `The passkey “${name}” cannot be used: passkeys are turned off.`;
      return as('off', why, '`sign_in.passkeys` turns them on.', times);
    },
    ends: (id) => [{ end: { action: 'passkey_removed', details: { passkey_id: id } } }],
    missing: none('passkey with this ID'),
  }),
};

async function connectionState(registries: Registries, id: string): Promise<Answer> {
  const [accountId = '', clientId = ''] = id.split('/');
  const whose = { accountId, clientId };
  const [connected] = (await registries.connections.listBoth(whose)).items;
  const end = connected ? undefined : await registries.connections.endOf(accountId, clientId);
  const never = as('unknown', 'The person never connected the client.');
  if (!connected)
    return withParties(registries, whose, end ? { ...endedBy('connection', end), remedy: undefined } : never);
  const times = { issued_at: connected.connectedAt, last_used_at: connected.lastUsedAt };
  const remedy = `\`connections end ${id}\` ends it.`;
  return withParties(registries, whose, as('active', 'The person has connected the client.', remedy, times));
}

async function apiKeyState(key: ApiKey, { access }: Registries): Promise<Answer> {
  const { id, accountId, createdAt, expiresAt, lastUsedAt, lastFour, name } = key;
  const times = { issued_at: createdAt, expires_at: expiresAt, last_used_at: lastUsedAt };
  if (expiresAt && isPast(expiresAt)) {
    return { ...as('expired', `The key “${name}” has expired.`, NEW_KEY, times), lastFour };
  }
  const allowing = await access.accessThrough(accountId, {});
  const refusing = (await access.accessOf({ accountId })).filter(({ id }) => allowing.every((one) => one.id !== id));
  const unreached = reachesNothing('Organizations allow no API keys', refusing);
  const why = sentences(`The key “${name}” is valid: introspection answers active.`, unreached, limitSentence(key));
  return { ...as('active', why, `\`api-keys revoke ${id}\` revokes the key.`, times), lastFour };
}

async function accountState(account: Account, registries: Registries): Promise<Answer> {
  const about = {
    times: { issued_at: account.createdAt },
    content: await accountReport(registries, account),
    log: await registries.audit.find({ accountId: account.id, limit: LOG_LENGTH }),
  };
  const signInMethods = await listSignInMethods(account, registries);
  if (signInMethods.length > 0) {
    return { ...as('active', `The person signs in with ${methodWords({ signInMethods })}.`), ...about };
  }
  const remedy = `\`accounts invite ${account.email}\` creates a one-time link.`;
  return { ...about, state: 'no_password_yet', why: 'The person has no sign-in method yet.', remedy };
}

async function requestState({ clientRequests, audit, clients }: Registries, id: string): Promise<Answer> {
  const problem = await clientRequests.ofRequest(id);
  if (problem) {
    const { step, error, cause, clientId, clientName, at } = problem;
    const why = `The ${step} request of the client was answered with ${error}: ${cause}`;
    const remedy = `\`clients show ${clientId}\` shows all problems of the client.`;
    const client = (await clients.find(clientId)) ?? { id: clientId, name: clientName };
    return { ...as('refused', why, remedy, { issued_at: at }), client };
  }
  const [done] = await audit.find({ requestId: id, limit: 1 });
  if (!done) {
    const why =
      'The stores have only requests that changed something, and for each client the last ' +
      '100 refused requests of each kind (5 of equal ones) of 7 days.';
    return as('unknown', why, `Search the log for ${id}: the log has a line for each request.`);
  }
  const remedy = `\`audit --request ${id}\` shows everything that it changed.`;
  const account = done.accountId === undefined ? undefined : { id: done.accountId };
  return {
    ...as('done', `The audit log has this request: ${entryText(done)}`, remedy, { issued_at: done.at }),
    account,
  };
}

function place(kind: PlaceKind, remedy?: string): Show {
  return subject({
    find: ({ organizations }, id) =>
      organizations.find(kind, id).catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error;
        return undefined;
      }),
    answer: async ({ name }, registries, id, isAlone) => ({
      ...as('active', 'This value is valid.'),
      name,
      content: await showReport(registries, kind, id, isAlone),
    }),
    ends: (id) => [{ end: { action: `${kind}_removed`, details: { [`${kind}_id`]: id } } }],
    missing: none(`${kind} with this ID`, remedy),
  });
}

async function sessionState(session: RecordedSession, registries: Registries): Promise<Answer> {
  const { uid, accountId, origin, begunAt, endedAt, generation } = session;
  const id = sessionId(session);
  const times = { issued_at: begunAt };
  const where = `The session in ${describeBrowser(origin.browser)} at ${origin.address}`;
  const account = await registries.accounts.find(accountId);
  if (endedAt !== null) {
    const end = { action: 'signed_out_elsewhere', details: { session_id: id } } as const;
    const ended = await whatEnded(registries, { accountId, end });
    return {
      state: 'revoked',
      why: sentences(`${where} was ended.`, ended?.why ?? 'The person signed out in that browser.'),
      times: { ...times, revoked_at: endedAt, ...ended?.times },
    };
  }
  if (account && generation < account.sessionGeneration) {
    const why = `${where} was ended with all others of the person, or of all people, by a sign-out everywhere, a new password, or a suspension.`;
    const remedy = `\`audit --account ${account.email}\` or \`audit --action signed_out_everywhere\` shows when and by whom.`;
    return as('revoked', why, remedy, times);
  }
  const active = (await activeAmong(registries, [session])).get(uid);
  if (!active) return as('expired', `${where} has expired.`, undefined, times);
  const until = { ...times, expires_at: active.endsAt, last_used_at: active.lastSeen };
  const remedy = account && `\`sessions end --account ${account.email}\` ends it with all others of the person.`;
  return as('active', `${where} is signed in.`, remedy, until);
}

const PURPOSES = {
  invitation: 'an invitation by the operator',
  forgotten: 'a “Forgot your password?” link',
  confirmed: 'a link to set a password, created after the person confirmed it with a provider',
} as const;

function linkState({ purpose, createdAt, expiresAt, hasSession }: KeptLink): Answer {
  const times = { issued_at: createdAt, expires_at: expiresAt };
  const what = `This is ${PURPOSES[purpose]}`;
  const another = '`accounts invite` creates another one.';
  let answer = as('active', `${what}. The link has not been used yet.`, undefined, times);
  if (!hasSession)
    answer = as('revoked', `${what}. It ended with the session in which it was created.`, another, times);
  else if (isPast(expiresAt)) answer = as('expired', `${what}. The link expired unused.`, another, times);
  return { ...answer, kind: 'link' };
}

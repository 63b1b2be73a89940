/** Mails users about events of their account, so that they notice what an attacker did. */
import type { SecretKind } from '../../base/random-id.ts';
import type { Account } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity/activity.ts';
import type { ExpiringKey } from '../api-keys/api-key.ts';
import { type BackgroundMail, hasMailbox, type Message, type SendMail } from './mail.ts';

/** Kinds of mail that users may switch off. Mail about sign-in methods is always sent. */
export const UNWANTED_MAIL = ['new_device', 'new_connection', 'new_api_key', 'key_expiry'] as const;

export type UnwantedMail = (typeof UNWANTED_MAIL)[number];
type NoticeKind = keyof typeof TEXTS;

export type AccountMail = ReturnType<typeof createAccountMail>;

interface From {
  readonly origin: Origin;
  readonly browser: string;
  readonly about?: string;
  readonly more?: readonly string[];
  readonly path?: string;
}

export function createAccountMail(parts: {
  readonly issuer: string;
  readonly accounts: Pick<AccountRegistry, 'find'>;
  readonly sendMail: SendMail;
  readonly background: BackgroundMail;
  readonly clock: () => number;
}) {
  const { issuer, accounts, sendMail, background, clock } = parts;

  /** @param what names the mail in the log, or is one of `UNWANTED_MAIL`. */
  const send = (accountId: string | undefined, what: string, write: (to: Account) => Message) =>
    background.begin(what, async () => {
      const account = accountId === undefined ? undefined : await accounts.find(accountId);
      if (!account || account.isSuspended || !hasMailbox(account)) return false;
      if (account.unwantedMail.includes(what)) return false;
      await sendMail(write(account));
      return true;
    });

  return {
    /** Mails the user, in the background, that another user offers them a client. */
    offerClient: (accountId: string, offer: MailedOffer) =>
      send(accountId, 'an offer of a client', (to) => offerMail(to, offer, issuer)),

    /** Mails an owner or admin in the background that a client waits for an approval. */
    requestApproval: (accountId: string, request: MailedRequest) =>
      send(accountId, 'a request for an approval', (to) => requestMail(to, request, issuer)),

    /** Mails the user, in the background, that an API key will expire. */
    announceExpiry: (key: ExpiringKey) =>
      send(key.accountId, 'key_expiry', (to) => expiryMail(to, key, issuer)),

    /** Mails the person, or the owner of the client, in the background. */
    reportLeak: (leak: MailedLeak) =>
      send(leak.accountId, 'a value found in public', (to) => leakMail(to, leak, issuer)),

    /**
     * Sends a mail in the background, if the user has not switched off this kind.
     *
     * @param about the name of the client, key or sign-in method, if the mail is about one.
     * @param browser a description such as `Firefox on Windows`.
     * @param more additional lines, each a sentence.
     * @param path of the page that the mail links to, instead of the usual one.
     * @returns true if the mail was sent, for the few callers that need to know. Never rejects.
     */
    notify(accountId: string, what: NoticeKind, from: From): Promise<boolean> {
      const at = new Date(clock());
      return background.begin(`a notice (${what})`, async () => {
        const account = await accounts.find(accountId);
        if (!account || account.unwantedMail.includes(what)) return false;
        if (!hasMailbox(account)) return false;
        await sendMail(noticeMail(account, what, { issuer, at, ...from }));
        return true;
      });
    },
  };
}

type Mailed = Pick<Account, 'name' | 'email'>;

type MailedOffer = Readonly<Record<'clientName' | 'fromName' | 'fromEmail' | 'path', string>> & {
  readonly expiresAt: Date;
};

type MailedRequest = Record<'clientName' | 'personName' | 'organizationName' | 'path', string>;

const letter = ({ name, email }: Mailed, subject: string, ...paragraphs: string[]): Message => ({
  to: { name, address: email },
  subject,
  text: [`Hello ${name},`, ...paragraphs].join('\n\n'),
});

const expiryMail = (to: Account, { name, lastFour, expiresAt }: ExpiringKey, issuer: string) =>
  letter(
    to,
    'A Gatehouse API key of yours expires soon',
    `your API key ${name}, which ends in ${lastFour}, expires on ${minuteOf(expiresAt)}. Every call with it is refused from then on.`,
    `If you still need it, create a new key, put it in place of the old one, then revoke the old one:\n${issuer}/profile/api-keys`,
    switchOff(issuer),
  );

const switchOff = (issuer: string) =>
  `You can switch off mail like this at ${issuer}/profile/security.`;

const requestMail = (
  to: Account,
  { clientName, personName, organizationName, path }: MailedRequest,
  issuer: string,
) =>
  letter(
    to,
    'An app waits for your approval at {brand}',
    `${personName} connected ${clientName}. It cannot access ${organizationName} until an owner or admin approves it.`,
    `Decide about ${clientName} and all other requests:\n${issuer}${path}`,
    'You get at most one mail an hour about requests, even if there are more.',
  );

const minuteOf = (at: Date): string => `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const offerMail = (
  to: Account,
  { clientName, fromName, fromEmail, expiresAt, path }: MailedOffer,
  issuer: string,
) =>
  letter(
    to,
    'You are offered an OAuth client at {brand}',
    `${fromName} (${fromEmail}) wants to hand over an OAuth client to you: ${clientName}.`,
    `Look at it, then take it over or decline it:\n${issuer}${path}`,
    `The offer ends on ${minuteOf(expiresAt)}. If you do not expect it, decline it or do nothing.`,
  );

/** See `Leak` of authorizations/leaked-values.ts. */
interface MailedLeak {
  readonly kind: SecretKind;
  readonly accountId?: string | undefined;
  readonly clientId?: string;
  readonly name: string;
  readonly foundAt: string;
  readonly refusedFrom?: Date | undefined;
}

/** Returns the mail that a value was found in public, for the person or the owner of the client. */
export function leakMail(
  { name, email }: Pick<Account, 'name' | 'email'>,
  { kind, clientId, foundAt, refusedFrom, name: about }: MailedLeak,
  issuer: string,
): Message {
  const secrets = `/profile/oauth-clients/${clientId}/secrets`;
  const access = [`A token with which ${about} acts for you`, ENDED, '/profile/connections'];
  const texts: Readonly<Record<SecretKind, readonly string[]>> = {
    client_secret: [
      `A secret of your OAuth client ${about}`,
      `It is refused from ${refusedFrom && minuteOf(refusedFrom)} on. ${ROTATE}`,
      secrets,
    ],
    machine_token: [`An access token of your OAuth client ${about}`, TOKEN_ENDED, secrets],
    api_key: [`Your API key ${about}`, KEY_ENDED, '/profile/api-keys'],
    access_token: access,
    refresh_token: access,
    code: access,
  };
  const [what, remedy, path] = texts[kind];
  // Attackers may choose the place. In brackets, no mail program makes it a link.
  const place = foundAt.replace(/[.:@]/g, '[$&]') || 'not reported';
  return {
    to: { name, address: email },
    subject: 'A secret value of Gatehouse was found in public',
    text: [
      `Hello ${name},`,
      `${what} was found in public.`,
      `Found at: ${place}\nAccount: ${email} at ${issuer}`,
      `${remedy}\n${issuer}${path}`,
    ].join('\n\n'),
  };
}

const ROTATE = 'Rotate it, use the new secret everywhere, then remove this one:';
const TOKEN_ENDED =
  'It was revoked. The client can get another one with its secret. If the secret may be public, too, rotate it:';
const KEY_ENDED = 'It was revoked. If you still need a key, create another one:';
const ENDED = 'This access was ended. See which clients are connected to you:';

/** Returns the mail about one event. Without `origin`, the operator caused the event. */
export function noticeMail(
  to: Mailed,
  what: NoticeKind,
  {
    issuer,
    at,
    origin,
    browser,
    about,
    more = [],
    path = TEXTS[what].path,
  }: Partial<From> & { issuer: string; at: Date },
): Message {
  const { subject, happened, remedy } = TEXTS[what];
  const where = origin ? `${browser}, ${origin.address}` : 'by the operator of the service';
  const isUnwanted = UNWANTED_MAIL.some((kind) => kind === what);
  return letter(
    to,
    subject,
    `${happened}${about === undefined ? '' : `: ${about}`}.`,
    `When: ${minuteOf(at)}\nWhere: ${where}\nAccount: ${to.email} at ${issuer}`,
    ...(more.length > 0 ? [more.join('\n')] : []),
    `If it was you, there is nothing to do. If not: ${remedy}\n${issuer}${path}`,
    ...(isUnwanted ? [switchOff(issuer)] : []),
  );
}

const TEXTS = {
  recovered: {
    subject: 'Your {brand} account was opened with a one-time link',
    happened: 'a one-time link for your account was used, and every browser was signed out',
    remedy: 'tell whoever opened your account now, and have another link sent to you.',
    path: '/login',
  },
  recovery_started: {
    subject: 'Someone asked to recover your {brand} account',
    happened: 'the recovery of your account was started, with a link that was mailed to you',
    remedy: 'stop it here. You do not need to sign in for that.',
    path: '/login',
  },
  way_added: {
    subject: 'There is a new way to sign in to your {brand} account',
    happened: 'somebody who was signed in to your account added a way to sign in',
    remedy: 'remove it, and change the password that you sign in with.',
    path: '/profile/security',
  },
  account_linked: {
    subject: 'There is a new way to sign in to your {brand} account',
    happened: 'an account elsewhere was linked with yours, and signed in to it for the first time',
    remedy: 'remove it, and ask the operator of the service why it was linked.',
    path: '/profile/security',
  },
  way_removed: {
    subject: 'A way to sign in to your {brand} account was removed',
    happened: 'a way to sign in to your account was removed, and every browser was signed out',
    remedy: 'look at what else opens your account.',
    path: '/profile/security',
  },
  unrecognized_ended: {
    subject: 'Access to your {brand} account was ended',
    happened: 'after the first sign-in with a provider, this lost access to your account',
    remedy: 'contact the people who run the service, and give them this message.',
    path: '/profile/security',
  },
  password_changed: {
    subject: 'Your {brand} password was changed',
    happened: 'the password of your account was changed, and every other browser was signed out',
    remedy:
      'choose a new one now, with “Forgot your password?” or by asking who opened your account.',
    path: '/login',
  },
  passkey_added: {
    subject: 'A passkey was added to your {brand} account',
    happened: 'a passkey was added, with which whoever has it can sign in to your account',
    remedy: 'remove it, sign out everywhere else, and change what you sign in with.',
    path: '/profile/security',
  },
  passkey_removed: {
    subject: 'A passkey was removed from your {brand} account',
    happened: 'a passkey was removed from your account, and lets nobody in any more',
    remedy: 'sign out everywhere else, and change what you sign in with.',
    path: '/profile/security',
  },
  passkey_copied: {
    subject: 'A passkey of your {brand} account was refused',
    happened: 'a passkey was refused that seems to be on two devices, as if it had been copied',
    remedy: 'sign in another way, and remove that passkey.',
    path: '/profile/security',
  },
  new_device: {
    subject: 'A new browser signed in to your {brand} account',
    happened: 'somebody signed in to your account in a browser that was not known yet',
    remedy: 'sign that browser out, and change the password that you sign in with.',
    path: '/profile/security',
  },
  new_connection: {
    subject: 'A client now acts for you at {brand}',
    happened: 'a client was approved to act for you',
    remedy: 'disconnect it, and change the password that you sign in with.',
    path: '/profile/connections',
  },
  new_api_key: {
    subject: 'A new {brand} API key acts as you',
    happened: 'an API key was created that acts as you',
    remedy: 'revoke it, and change the password that you sign in with.',
    path: '/profile/api-keys',
  },
} as const;

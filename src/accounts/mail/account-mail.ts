/** Sends users mail about events of their account, so that they notice the actions of an attacker. */
import { type Message, message, type Text } from '../../base/message.ts';
import type { SecretKind } from '../../base/random-id.ts';
import type { Account } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity/activity.ts';
import { deviceName } from '../browser-names.ts';
import { type Block, type Fact, type Letter, letter } from './letter.ts';
import { type BackgroundMail, hasMailbox, type SendMail } from './mail.ts';

/** Kinds of mail that users may switch off. Mail about sign-in methods is always sent. */
export const UNWANTED_MAIL = [
  'new_device',
  'new_connection',
  'silent_authorization',
  'new_api_key',
  'client_problem',
] as const;

export type UnwantedMail = (typeof UNWANTED_MAIL)[number];
type NoticeKind = keyof typeof NOTICES;

export type AccountMail = ReturnType<typeof createAccountMail>;

export interface MailedEvent {
  readonly origin: Origin;
  readonly about?: Text;
  readonly more?: readonly Block[];
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

  /** @param what the name of the mail in the log, or one of `UNWANTED_MAIL` */
  const send = (accountId: string | undefined, what: string, write: (to: Account) => Letter) =>
    background.begin(what, async () => {
      const account = accountId === undefined ? undefined : await accounts.find(accountId);
      if (!account || account.isSuspended || !hasMailbox(account)) return undefined;
      if (account.unwantedMail.includes(what)) return undefined;
      await sendMail(write(account));
      return true;
    });

  return {
    reportProblems: (accountId: string, problems: MailedProblems) =>
      send(accountId, 'client_problem', (to) => problemsMail(to, problems, issuer)),

    reportLeak: (leak: MailedLeak) =>
      send(leak.accountId, 'a value found in public', (to) => leakMail(to, leak, issuer)),

    /**
     * Sends a mail in the background, unless the user has switched off this kind. Never rejects.
     *
     * @param about the name of the client, key or sign-in method that the mail concerns
     * @param path of the page that the mail links to, instead of the usual page
     * @returns true if the mail was sent
     */
    notify(accountId: string, what: NoticeKind, from: MailedEvent): Promise<boolean> {
      const at = new Date(clock());
      return background.begin(`a notice (${what})`, async () => {
        const account = await accounts.find(accountId);
        if (!account || account.unwantedMail.includes(what) || !hasMailbox(account)) return false;
        await sendMail(noticeMail(account, what, { issuer, at, ...from }));
        return true;
      });
    },
  };
}

type Recipient = Letter['to'];

interface MailedProblems {
  readonly items: readonly Message[];
  readonly path: string;
}

export const problemsMail = (to: Recipient, { items, path }: MailedProblems, issuer: string): Letter =>
  letter(
    to,
    message('mail.client_problem-subject'),
    message('mail.client_problem'),
    { items },
    { facts: [accountFact(to, issuer)] },
    message('mail.client_problem-remedy'),
    { button: message('mail.open-problems'), url: issuer + path },
    switchOff(issuer),
  );

const accountFact = ({ email }: Recipient, issuer: string): Fact => [
  message('mail.account'),
  message('mail.account-at', { email, issuer }),
];

const switchOff = (issuer: string) => ({ small: message('mail.switch-off', { url: `${issuer}${PATHS.security}` }) });

/** A `Leak` (authorizations/leaked-values.ts) with the properties that its mail needs. */
interface MailedLeak {
  readonly kind: SecretKind;
  readonly accountId?: string | undefined;
  readonly clientId?: string;
  readonly name: string;
  readonly foundAt: string;
  readonly refusedFrom?: Date | undefined;
}

export function leakMail(
  to: Recipient,
  { kind, clientId, foundAt, refusedFrom, name: about }: MailedLeak,
  issuer: string,
): Letter {
  const [what, button, path] = LEAKS[kind];
  const refused = refusedFrom ? { iso: refusedFrom.toISOString() } : '';
  // An attacker may have chosen this text. The brackets prevent mail programs from making a link of it.
  const place = foundAt.replace(/[.:@]/g, '[$&]') || message('mail.place-unknown');
  return letter(
    to,
    message('mail.leak-subject', { what }),
    message(`mail.leak-${what}`, { about }),
    {
      facts: [[message('mail.found-at'), place], accountFact(to, issuer)],
    },
    message(`mail.leak-${what}-remedy`, { refused }),
    { button: message(`mail.open-${button}`), url: issuer + path.replace(':id', `${clientId}`) },
  );
}

const LEAKS = {
  client_secret: ['client_secret', 'secrets', '/profile/oauth-clients/:id/secrets'],
  machine_token: ['machine_token', 'secrets', '/profile/oauth-clients/:id/secrets'],
  api_key: ['api_key', 'api-keys', '/profile/api-keys'],
  access_token: ['access', 'connections', '/profile/connections'],
  refresh_token: ['access', 'connections', '/profile/connections'],
  code: ['access', 'connections', '/profile/connections'],
} as const satisfies Readonly<Record<SecretKind, readonly string[]>>;

/** If `origin` is absent, the operator caused the event. */
export function noticeMail(
  to: Recipient,
  what: NoticeKind,
  {
    issuer,
    at,
    origin,
    about = '',
    more = [],
    path = PATHS[NOTICES[what]],
  }: Partial<MailedEvent> & { issuer: string; at: Date },
): Letter {
  const device = origin && (deviceName(origin.browser) ?? message('mail.unknown-device'));
  const isUnwanted = UNWANTED_MAIL.some((kind) => kind === what);
  return letter(
    to,
    message(`mail.${what}-subject`),
    message(`mail.${what}`, { about }),
    {
      facts: [
        [message('mail.when'), { iso: at.toISOString() }],
        ...(device
          ? ([
              [message('mail.device'), device],
              [message('mail.place'), message('mail.ip-address', { address: origin.address })],
            ] as const)
          : ([[message('mail.by'), message('mail.administrator')]] as const)),
        accountFact(to, issuer),
      ],
    },
    ...more,
    message(`mail.${what}-remedy`),
    { button: message(`mail.open-${NOTICES[what]}`), url: issuer + path },
    ...(isUnwanted ? [switchOff(issuer)] : []),
  );
}

const PATHS = {
  'sign-in': '/login',
  security: '/profile/security',
  connections: '/profile/connections',
  'api-keys': '/profile/api-keys',
  secrets: '/profile/oauth-clients',
} as const;

/** The page that the button of each mail opens. */
const NOTICES = {
  recovered: 'sign-in',
  method_added: 'security',
  account_linked: 'security',
  method_removed: 'security',
  unrecognized_ended: 'security',
  password_changed: 'sign-in',
  passkey_added: 'security',
  passkey_removed: 'security',
  passkey_copied: 'security',
  new_device: 'security',
  new_connection: 'connections',
  silent_authorization: 'connections',
  new_api_key: 'api-keys',
  client_renewed: 'secrets',
} as const satisfies Readonly<Record<string, keyof typeof PATHS>>;

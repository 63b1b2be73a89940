/** The doctor's checks of other servers: the mail server and the sign-in providers. */
import { checkMailServer, createSendMail } from '../accounts/mail/mail.ts';
import { findProviders } from '../config/load.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { ownText } from '../texts/texts.ts';
import { type Check, check } from './check.ts';
import { ok, problem, type Verdict, warning } from './findings.ts';

export const SERVER_CHECKS: readonly Check[] = [
  check('mail', ['settings'], 'SMTP_URL', ({ settings }, { mail }) => mailVerdict(settings, mail)),

  // Check all concurrently, so that one without an answer does not delay the others.
  check('sign_in_providers', ['settings'], '', ({ settings: { issuer } }, { environment }) =>
    providerVerdicts(issuer, findProviders({ environment })),
  ),
];

async function mailVerdict(
  { mail, issuer, brand }: Pick<SettingsWithoutSecrets, 'mail' | 'issuer' | 'brand'>,
  testMailTo: string | undefined,
): Promise<Verdict | readonly Verdict[]> {
  if (!mail) {
    const remedy = 'set SMTP_URL and mail.from, or run the doctor with the environment of the service';
    const missing = `no mail was sent to ${testMailTo}: these settings have no mail server`;
    return testMailTo === undefined ? [] : problem(missing, remedy);
  }
  const { host } = new URL(mail.smtpUrl);
  const start = performance.now();
  try {
    await checkMailServer(mail);
    if (testMailTo === undefined) {
      return ok(`${host} accepts our connection and login; no mail was sent`, performance.now() - start);
    }
    await createSendMail(
      mail,
      brand,
    )({
      to: { name: testMailTo, address: testMailTo },
      subject: `Test mail of ${ownText(brand.name)}`,
      text:
        `An operator of ${issuer} sent this mail with \`gatehouse doctor --mail\` to test ` +
        'mail delivery. You need not do anything.',
    });
    const message = `${host} accepted one test mail to ${testMailTo}: check whether it arrives, and in which folder`;
    return ok(message, performance.now() - start);
  } catch (error) {
    return mailTrouble(error, host);
  }
}

/** @param error from nodemailer, with the text of the server or system, never with the password */
function mailTrouble(error: unknown, host: string): Verdict {
  const { code = '', message } = error as Error & { code?: string };
  // Recognize an untrusted certificate, for which nodemailer reports the code of a socket error.
  const kind = /certificate/i.test(message) ? 'ETLS' : code;
  const { says, remedy } = TROUBLES.find(({ codes }) => codes.includes(kind)) ?? OTHERWISE;
  return problem(`no mail can be sent: ${host} ${says} (${message.trim()})`, remedy);
}

const TROUBLES = [
  {
    codes: ['EAUTH', 'ENOAUTH'],
    says: 'does not accept our login',
    remedy:
      'compare the user name and password in SMTP_URL with those of the mail server; ' +
      'percent-encode @, : and / in them (%40, %3A, %2F)',
  },
  {
    codes: ['ETLS', 'EREQUIRETLS'],
    says: 'offers no encryption that we accept',
    remedy:
      'write smtps:// for TLS from the first byte (port 465) or smtp:// for STARTTLS (port ' +
      '587); for your own authority set NODE_EXTRA_CA_CERTS',
  },
  {
    codes: ['EENVELOPE', 'EMESSAGE', 'EPROTOCOL'],
    says: 'refuses the mail or ends the session',
    remedy: 'allow mail from mail.from on the mail server, and see its log',
  },
  {
    codes: ['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EDNS'],
    says: 'does not answer as a mail server',
    remedy:
      'check that the host and port in SMTP_URL are correct, that the mail server is running and speaks TLS as in ' +
      'SMTP_URL (smtps:// from the first byte, smtp:// with STARTTLS), and that this machine can connect to it',
  },
];

const OTHERWISE = { says: 'fails', remedy: 'see the log of the mail server' };

export async function providerVerdicts(
  issuer: string,
  { providers, problems }: ReturnType<typeof findProviders>,
): Promise<readonly Verdict[]> {
  if (providers.length === 0) return [];
  // Import these only when needed: most deployments have no providers.
  const { UpstreamRefusal } = await import('../upstream/failures.ts');
  const { callbackUrl, createUpstreamProvider } = await import('../upstream/upstream-provider.ts');

  async function verdictOf(settings: SignInProvider, index: number): Promise<Verdict> {
    const { id } = settings;
    const where = `sign_in.providers.${index}`;
    const secret = `${where}.client_secret_file`;
    const unread = problems.find(({ path }) => path === secret);
    const redirectUri = callbackUrl(issuer, settings);
    const provider = createUpstreamProvider({ issuer, settings, clock: Date.now });
    const start = performance.now();
    try {
      await provider.checkClient();
    } catch (error) {
      if (!(error instanceof UpstreamRefusal)) {
        return problem(
          `the provider ${id} cannot be used from this machine: ${(error as Error).message}`,
          'check that this machine can connect to the provider and trusts its certificate (NODE_EXTRA_CA_CERTS for ' +
            'your own authority); or open {issuer}/.well-known/openid-configuration, and copy its `issuer` exactly ' +
            'into the settings',
          `sign_in.providers, ${settings.issuer}`,
        );
      }
      if (unread) {
        const message = `${id} answers; our secret was not tested, because ${secret} ${unread.message}`;
        const remedy = 'run the doctor as the user of the service, or make the file readable for this user';
        return warning(message, remedy, secret);
      }
      return problem(
        `${id} does not accept our client ID or secret: ${error.message}`,
        'compare client_id and client_secret_file with those registered at the provider; ' +
          'the client must be allowed to use authorization codes',
        where,
      );
    }
    const ms = performance.now() - start;
    const redirect = await provider.checkRedirectUri().catch(() => 'unknown' as const);
    if (redirect === 'registered') return ok(`${id} accepts our client, and the redirect URI ${redirectUri}`, ms);
    if (redirect === 'refused') {
      return problem(
        `${id} accepts our client, but answers 400 to a sign-in with the redirect URI ${redirectUri}`,
        `register ${redirectUri} as a redirect URI of client ${settings.clientId} at the provider, character by character`,
        where,
      );
    }
    const unknown = `shows only to people whether the redirect URI ${redirectUri} is registered`;
    return ok(`${id} accepts our client, but ${unknown}: compare it at the provider, or sign in once`, ms);
  }

  return Promise.all(providers.map(verdictOf));
}

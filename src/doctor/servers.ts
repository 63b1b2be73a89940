/** The doctor's checks of other servers: the mail server and the sign-in providers. */
import { checkMailServer, createSendMail } from '../accounts/mail/mail.ts';
import { findProviders } from '../config/load.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { ownText } from '../texts/texts.ts';
import { type Check, check } from './check.ts';
import { byCode, type CodeTable } from './connection-errors.ts';
import { ok, problem, trouble, type Verdict } from './findings.ts';

export const SERVER_CHECKS: readonly Check[] = [
  check('mail', ['settings'], 'SMTP_URL', ({ settings, mail }) => {
    if (settings.mail) return mailVerdict(settings, settings.mail, mail);
    return mail === undefined
      ? []
      : problem`no mail was sent to ${mail}: these settings have no mail server →
          set SMTP_URL and mail.from, or run the doctor with the environment of the service`;
  }),

  check('sign_in_providers', ['settings'], '', ({ settings: { issuer }, environment }) =>
    providerVerdicts(issuer, findProviders({ environment })),
  ),
];

async function mailVerdict(
  { issuer, brand }: SettingsWithoutSecrets,
  mail: NonNullable<SettingsWithoutSecrets['mail']>,
  address: string | undefined,
): Promise<Verdict> {
  const { host } = new URL(mail.smtpUrl);
  const start = performance.now();
  const done = (what: string): Verdict => ok(`${host} ${what}`, performance.now() - start);
  try {
    await checkMailServer(mail);
    if (address === undefined) return done('accepts our connection and login; no mail was sent');
    const text =
      `An operator of ${issuer} sent this mail with \`gatehouse doctor --mail\` to test mail delivery. ` +
      'You need not do anything.';
    const subject = `Test mail of ${ownText(brand.name)}`;
    await createSendMail(mail, brand)({ to: { name: address, address }, subject, text });
    return done(`accepted one test mail to ${address}: check whether it arrives, and in which folder`);
  } catch (error) {
    // Printing the message is safe: nodemailer, the mail server and the system never put the password into it.
    const { code = '', message } = error as Error & { code?: string };
    // Recognize an untrusted certificate by the message, because nodemailer sets the same code as for any socket error.
    const kind = /certificate/i.test(message) ? 'ETLS' : code;
    const says = byCode(MAIL_TROUBLES, kind) ?? problem`fails → see the log of the mail server`;
    return { ...says, message: `no mail can be sent: ${host} ${says.message} (${message.trim()})` };
  }
}

const MAIL_TROUBLES: CodeTable = {
  'EAUTH ENOAUTH': problem`does not accept our login → compare the user name and password in SMTP_URL with those of the
    mail server; percent-encode @, : and / in them (%40, %3A, %2F)`,
  'ETLS EREQUIRETLS': problem`offers no encryption that we accept → write smtps:// for TLS from the first byte (port
    465) or smtp:// for STARTTLS (port 587); for your own authority set NODE_EXTRA_CA_CERTS`,
  'EENVELOPE EMESSAGE EPROTOCOL': problem`refuses the mail or ends the session →
    allow mail from mail.from on the mail server, and see its log`,
  'ECONNECTION ESOCKET ETIMEDOUT EDNS': problem`does not answer as a mail server → check that the host and port in
    SMTP_URL are correct, that the mail server is running and speaks TLS as in SMTP_URL (smtps:// from the first byte,
    smtp:// with STARTTLS), and that this machine can connect to it`,
};

export async function providerVerdicts(
  issuer: string,
  { providers, problems }: ReturnType<typeof findProviders>,
): Promise<readonly Verdict[]> {
  if (providers.length === 0) return [];
  // Import these modules only if needed, because most deployments have no sign-in providers.
  const { UpstreamRefusal } = await import('../upstream/failures.ts');
  const { callbackUrl, createUpstreamProvider } = await import('../upstream/upstream-provider.ts');

  async function verdictOf(settings: SignInProvider, index: number): Promise<Verdict> {
    const { id } = settings;
    const where = `sign_in.providers.${index}`;
    const wrong = problems.find(({ path }) => path.startsWith(`${where}.`));
    if (wrong)
      return trouble('warning', wrong.path)`${id} was not asked: ${wrong.path} ${wrong.message} → ${wrong.remedy}`;
    const provider = createUpstreamProvider({ issuer, settings, clock: Date.now });
    const start = performance.now();
    const failure = await provider.checkClient().catch((error: Error) => error);
    if (failure && !(failure instanceof UpstreamRefusal)) {
      const both = `sign_in.providers, ${settings.issuer}`;
      return trouble('problem', both)`the provider ${id} cannot be used from this machine: ${failure.message} →
        check that this machine can connect to the provider and trusts its certificate (NODE_EXTRA_CA_CERTS for your own
        authority); or open {issuer}/.well-known/openid-configuration, and copy its \`issuer\` exactly into the settings`;
    }
    if (failure) {
      return trouble('problem', where)`${id} does not accept our client ID or secret: ${failure.message} →
        compare client_id and client_secret_file with those registered at the provider; the client must be allowed to
        use authorization codes`;
    }
    const [ms, uri] = [performance.now() - start, callbackUrl(issuer, settings)];
    return ok(`${id} accepts our client; sign in once to test that it has the redirect URI ${uri}`, ms);
  }

  return Promise.all(providers.map(verdictOf));
}

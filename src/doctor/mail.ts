/** The doctor's check of the mail server: connection and login. Sends a mail only on request. */
import { checkMailServer, createSendMail } from '../accounts/mail/mail.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { ownText } from '../texts/texts.ts';
import { type Findings, ok, problem, type Verdict } from './findings.ts';

export async function checkMail(
  findings: Findings,
  { mail, issuer, brand }: Pick<SettingsWithoutSecrets, 'mail' | 'issuer' | 'brand'>,
  testMailTo?: string,
): Promise<void> {
  const add = (verdict: Verdict): void => findings.add('mail', 'SMTP_URL', verdict);
  if (!mail) {
    if (testMailTo === undefined) return;
    const missing = `no mail was sent to ${testMailTo}: these settings have no mail server`;
    const remedy = 'set SMTP_URL and mail.from, or run the doctor with the environment of the service';
    return add(problem(missing, remedy));
  }
  const { host } = new URL(mail.smtpUrl);
  const start = performance.now();
  try {
    await checkMailServer(mail);
    let message = `${host} accepts our connection and login; no mail was sent`;
    if (testMailTo !== undefined) {
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
      message = `${host} accepted one test mail to ${testMailTo}: check whether it arrives, and in which folder`;
    }
    add(ok(message, performance.now() - start));
  } catch (error) {
    add(mailTrouble(error, host));
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

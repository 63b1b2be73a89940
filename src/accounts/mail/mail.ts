/** Sends mail through the operator's server, in the background. */
import { domainToASCII } from 'node:url';
import type { PluginFunction, Transporter } from 'nodemailer';
import type { Logger } from 'pino';
import { isMailbox, parseSender } from '../../texts/mailbox.ts';
import { type Letter, type MailBrand, writeLetter } from './letter.ts';

/** A mail to operators, in English. */
interface PlainMail {
  readonly to: { readonly name: string; readonly address: string };
  readonly subject: string;
  readonly text: string;
}

/** Resolves when the mail server has accepted the mail, and rejects otherwise. */
export type SendMail = (mail: Letter | PlainMail) => Promise<void>;

/** False for addresses under `.invalid`, such as the doctor's, because no host exists there (RFC 2606 §2). */
export const hasMailbox = ({ email }: { readonly email: string }): boolean => !/\.invalid$/i.test(email);

/** How long the server may take to accept the connection, to greet, and to answer each command. */
const TIMEOUTS_MS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

interface MailSettings {
  readonly smtpUrl: string;
  readonly from: string;
}

/** @param smtpUrl `smtps://`, or `smtp://`: TLS if the server has it, and always if a password leaves the machine */
export function createSendMail({ smtpUrl, from }: MailSettings, brand: MailBrand): SendMail {
  // Parse the URL here, so that an invalid one is refused together with the settings.
  const url = new URL(smtpUrl);
  let transport: Transporter | undefined;
  return async (mail) => {
    transport ??= await createTransporter(url);
    const message = 'text' in mail ? mail : await writeLetter(mail, brand);
    await transport.sendMail({ ...message, from: parseSender(from) ?? from });
  };
}

/** nodemailer replaces or quotes some characters of an address, so that a mail could go to another mailbox. */
const refuseOtherRecipient: PluginFunction = ({ data, message }, done) => {
  const { address } = data.to as PlainMail['to'];
  const [recipient = '', ...others] = message?.getEnvelope().to ?? [];
  const isSame =
    recipient === address || (isMailbox(address) && withAsciiDomain(recipient) === withAsciiDomain(address));
  const isRefused = !isSame || others.length > 0;
  done(isRefused ? new Error('the address has characters that this mail server does not support') : null);
};

/** Returns the address as nodemailer writes a recipient. */
function withAsciiDomain(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  const domain = address.slice(at);
  return address.slice(0, at) + (domainToASCII(domain) || domain);
}

/** Logs in to the mail server, but sends no mail. @throws nodemailer's Error, whose `code` names the failed step */
export async function checkMailServer({ smtpUrl }: MailSettings): Promise<void> {
  const transport = await createTransporter(new URL(smtpUrl));
  await transport.verify();
}

/** Loads nodemailer only when needed, because most deployments send no mail. */
async function createTransporter({ href, hostname, password }: URL): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return createTransport({
    url: href,
    ...TIMEOUTS_MS,
    requireTLS: password !== '' && !isLoopback,
    disableFileAccess: true,
    disableUrlAccess: true,
  }).use('stream', refuseOtherRecipient);
}

export type BackgroundMail = ReturnType<typeof createBackgroundMail>;

interface MailOutcomes {
  mailed(outcome: 'sent' | 'failed' | 'dropped'): void;
}

/** Maximum number of mails in progress, because each needs memory and a connection. Others are dropped. */
const MAX_AT_ONCE = 100;
/** While this many mails are in progress, requests without a session add no mail, so that notices can still be sent. */
const MAX_ASKED_AT_ONCE = 50;

/** Sends mail in the background. No request waits for it or fails with it. */
export function createBackgroundMail({ log, outcomes }: { readonly log: Logger; readonly outcomes: MailOutcomes }) {
  const inProgress = new Set<Promise<unknown>>();
  return {
    /**
     * Starts the work and does not wait for it. Never rejects.
     *
     * @param what the name of the mail in the log
     * @param by `anyone` if a request without a session causes this mail
     * @returns the result of `work`; false if it failed, or if too many mails are in progress
     */
    begin<Result extends boolean | undefined>(
      what: string,
      work: () => Promise<Result>,
      by?: 'anyone',
    ): Promise<Result | false> {
      if (inProgress.size >= (by === 'anyone' ? MAX_ASKED_AT_ONCE : MAX_AT_ONCE)) {
        outcomes.mailed('dropped');
        log.warn({ what }, 'too many mails at once: one was dropped');
        return Promise.resolve(false);
      }
      const sending = work()
        .then((isSent) => {
          if (isSent) outcomes.mailed('sent');
          return isSent;
        })
        .catch((err: unknown): false => {
          outcomes.mailed('failed');
          log.error({ err }, `${what} was not mailed`);
          return false;
        })
        .finally(() => inProgress.delete(sending));
      inProgress.add(sending);
      return sending;
    },

    async close(): Promise<void> {
      await Promise.all(inProgress);
    },
  };
}

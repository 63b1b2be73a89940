/** Mail, handed to the operator's server. */
import { createTransport } from 'nodemailer';

export interface Message {
  readonly to: { readonly name: string; readonly address: string };
  readonly subject: string;
  readonly text: string;
}

/** Resolves when the server took the message; rejects when it did not. */
export type SendMail = (message: Message) => Promise<void>;

/** Milliseconds: for a server to accept the connection, to greet, and to answer each command. */
const TIMEOUTS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

/**
 * @param smtpUrl `smtp://` (encrypted where the server offers it, and always when a password is
 *   sent to another machine) or `smtps://`.
 * @param from an address, or `Name <address>`.
 */
export function createSendMail({ smtpUrl, from }: { smtpUrl: string; from: string }): SendMail {
  const { hostname, password } = new URL(smtpUrl);
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  const transport = createTransport({
    url: smtpUrl,
    ...TIMEOUTS,
    requireTLS: password !== '' && !isLoopback,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return async (message) => {
    await transport.sendMail({ ...message, from });
  };
}

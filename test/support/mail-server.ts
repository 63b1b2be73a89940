/** A real SMTP server on a loopback port, which keeps the mail that it receives. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { atEndOfFile } from './end-of-run.ts';
import { eventually } from './eventually.ts';
import { type Deployment, type Start, startsOn } from './service.ts';

export interface ReceivedMail {
  /** The recipients in the envelope. */
  readonly to: readonly string[];
  readonly from: string;
  readonly subject: string;
  /** The complete message as received: headers, an empty line, the text. */
  readonly raw: string;
  /** The plain text, decoded. */
  readonly text: string;
  /** The text in HTML, decoded; empty if there is none. */
  readonly html: string;
}

export interface MailServer {
  /** The value for `settings.mail.smtpUrl`. */
  readonly url: string;
  readonly received: readonly ReceivedMail[];
  /** Closes the server before the end of the file. */
  close(): Promise<void>;
}

/**
 * Starts a mail server, for the rest of the file.
 *
 * @param login the required user name and password; without these the server accepts all mail
 * @param received the array to which received mail is added
 * @param refused recipients whose mail is refused
 */
export async function startMailServer(
  login?: readonly [string, string],
  received: ReceivedMail[] = [],
  refused: ReadonlySet<string> = new Set(),
): Promise<MailServer> {
  const server = new SMTPServer({
    authOptional: !login,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      const [user, secret] = login ?? [];
      const isRight = user !== undefined && user === username && secret === password;
      done(isRight ? null : new Error('wrong login'), { user: username });
    },
    onRcptTo({ address }, _session, done) {
      done(refused.has(address) ? new Error('refused') : null);
    },
    onData(stream, { envelope }, done) {
      text(stream).then((raw) => {
        received.push({
          to: envelope.rcptTo.map(({ address }) => address),
          from: envelope.mailFrom ? envelope.mailFrom.address : '',
          subject: /^Subject: (.*)$/m.exec(raw)?.[1]?.trim() ?? '',
          raw,
          ...partsOf(raw),
        });
        done();
      }, done);
    },
  });
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  const credentials = login ? `${login.map(encodeURIComponent).join(':')}@` : '';
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  atEndOfFile(close);
  return { url: `smtp://${credentials}127.0.0.1:${port}`, received, close };
}

/** Returns a function that starts services with a mail server, which requires a login. */
export function startsWithMail(deployment?: Deployment): {
  readonly start: Start;
  readonly received: readonly ReceivedMail[];
  /** Recipients whose mail is refused for now. */
  readonly refused: Set<string>;
  /** Waits for a mail to this address that contains these words: mails are sent in the background, in any order. */
  mailTo(address: string, what: string): Promise<ReceivedMail>;
} {
  const start = startsOn(deployment);
  const received: ReceivedMail[] = [];
  const refused = new Set<string>();
  return {
    received,
    refused,
    mailTo: (address, what) =>
      eventually(() => {
        const found = received.find(({ to, raw }) => to.includes(address) && raw.includes(what));
        if (!found) throw new Error('no such mail yet');
        return found;
      }),
    async start({ settings, ...options } = {}) {
      const server = await startMailServer(['gate', 'p@ss word'], received, refused);
      const mail = { smtpUrl: server.url, from: 'Gatehouse <gatehouse@localhost>' };
      return start({ ...options, settings: { mail, ...settings } });
    },
  };
}

/** Returns the parts of a multipart/alternative; otherwise all is plain text. */
function partsOf(raw: string): Pick<ReceivedMail, 'text' | 'html'> {
  const [, boundary] = /^Content-Type: multipart\/alternative;\s+boundary="([^"]+)"/m.exec(raw) ?? [];
  if (!boundary) return { text: decoded(raw), html: '' };
  const [, text = '', html = ''] = raw.split(new RegExp(`\r?\n--${boundary}(?:--)?\r?\n`));
  // With a logo, the HTML is the first part of a part.
  const [, related] = /^Content-Type: multipart\/related;[\s\S]*?boundary="([^"]+)"/m.exec(html) ?? [];
  return { text: decoded(text), html: decoded(related ? (html.split(`--${related}\r\n`)[1] ?? '') : html) };
}

function decoded(raw: string): string {
  const [headers = '', ...body] = raw.split('\r\n\r\n');
  const content = body.join('\r\n\r\n');
  if (/^content-transfer-encoding: base64/im.test(headers)) {
    return Buffer.from(content, 'base64').toString();
  }
  if (!/^content-transfer-encoding: quoted-printable/im.test(headers)) return content;
  const bytes = content
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

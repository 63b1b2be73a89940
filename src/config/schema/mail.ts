/** The settings under `mail`: where mail goes and who it is from. */
import { isDecodable, PASSWORDS_IN_URLS } from '../storage-urls.ts';
import { text } from './kinds.ts';

export const mail = {
  smtp_url: text(
    {
      accepts: 'an SMTP URL',
      example: `\`smtp://mail.example.com:587\` (smtps:// for TLS from the first byte); ${PASSWORDS_IN_URLS}`,
    },
    isSmtpUrl,
  )
    .optional()
    .describe(
      'Server that takes mail for delivery. Put a URL with a password into the environment, as ' +
        'SMTP_URL. Default: no mail is sent, and there is no “Forgot password?”.',
    ),
  from: text(
    {
      accepts: 'a sender',
      example: '`gatehouse@example.com` or `Gatehouse <gatehouse@example.com>`',
    },
    isSender,
  )
    .optional()
    .describe('Who the mail is from; needed with smtp_url.'),
};

/** `smtp://` (STARTTLS where the server offers it) or `smtps://`, one server, with or without a login. */
function isSmtpUrl(url: string): boolean {
  return /^smtps?:\/\/[^/?#]+\/?$/.test(url) && URL.canParse(url) && isDecodable(url);
}

/** An address, or a name and an address in angle brackets. One line, for it becomes a header. */
function isSender(sender: string): boolean {
  return /^(?:[^\p{C}<>]+ <[^\s\p{C}<>@]+@[^\s\p{C}<>@]+>|[^\s\p{C}<>@]+@[^\s\p{C}<>@]+)$/u.test(
    sender,
  );
}

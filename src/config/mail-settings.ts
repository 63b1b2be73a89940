/** How an operator writes where mail goes and who it is from. */

/** `smtp://` (STARTTLS where the server offers it) or `smtps://`, one server, with or without a login. */
export function isSmtpUrl(url: string): boolean {
  return /^smtps?:\/\/[^/?#]+\/?$/.test(url) && URL.canParse(url);
}

/** An address, or a name and an address in angle brackets. One line, for it becomes a header. */
export function isSender(sender: string): boolean {
  return /^(?:[^\p{C}<>]+ <[^\s\p{C}<>@]+@[^\s\p{C}<>@]+>|[^\s\p{C}<>@]+@[^\s\p{C}<>@]+)$/u.test(
    sender,
  );
}

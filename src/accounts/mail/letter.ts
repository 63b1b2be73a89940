/** Writes mails to users in their language, as plain text and as HTML. */
import { fileURLToPath } from 'node:url';
import { type Message, message, type Text, type Values } from '../../base/message.ts';
import { contactUrl } from '../../texts/mailbox.ts';
import { INVISIBLE } from '../../texts/name-rules.ts';
import { type OwnText, ownText, type Texts, textsFor } from '../../texts/texts.ts';
import type { Account } from '../account.ts';

type Value = Values[string];
export type Fact = readonly [label: Message, value: Exclude<Value, number>];

export type Block =
  | Message
  | { readonly facts: readonly Fact[] }
  | { readonly items: readonly Text[] }
  | { readonly button: Message; readonly url: string }
  /** A remark in small print. */
  | { readonly small: Message };

/** A mail before its translation. Each of its messages may have the argument `brand`. */
export interface Letter {
  readonly to: Pick<Account, 'name' | 'email' | 'language'>;
  readonly subject: Message;
  readonly blocks: readonly Block[];
}

/** The operator's name and contact, for the subject, the texts and the end of each mail. */
export interface MailBrand {
  readonly name: OwnText;
  readonly homeUrl?: OwnText;
  readonly support?: OwnText;
  /** The color of the button. It is readable on white. */
  readonly colour?: string;
  readonly logo?: { readonly type: string; readonly width: number; readonly height: number; readonly base64: string };
}

export const letter = (to: Letter['to'], subject: Message, ...blocks: Block[]): Letter => ({
  to,
  subject,
  blocks: [message('common.hello', { name: to.name }), ...blocks],
});

/** Writes a letter in the language of its recipient, as plain text and as HTML with the same content. */
export async function writeLetter(mail: Letter, brand: MailBrand) {
  const t = textsFor(mail.to.language);
  const name = clean(ownText(brand.name, t.language));
  const { to, subject, blocks } = prepared(mail, name);
  const contacts = [brand.homeUrl, brand.support].flatMap((contact) =>
    contact === undefined ? [] : ownText(contact, t.language),
  );
  const page = {
    subject: t(subject),
    brand: name,
    // The preview that mailboxes show after the subject: the first sentence after the greeting, and the list after it.
    preheader: blocks.slice(1, 3).flatMap((block) => ('key' in block ? block : 'items' in block ? block.items : [])),
    blocks,
    colour: brand.colour,
    logo: brand.logo && { cid: LOGO, ...scaled(brand.logo) },
    contacts: contacts.map((text) => ({ text, href: contactUrl(text) })),
  };
  const texts = blocks.map((block) => blockText(t, block));
  // Mail programs recognize a line with these three characters as the start of a signature.
  if (contacts.length > 0) texts.push(['-- ', name, ...contacts].join('\n'));
  // Load EJS here, because few commands need it. The service has already loaded it, with this view, at its start.
  const { default: ejs } = await import('ejs');
  return {
    to: { name: to.name, address: mail.to.email },
    subject: page.subject,
    text: texts.join('\n\n'),
    html: await ejs.renderFile(VIEW, { page, t }, OPTIONS),
    attachments: brand.logo
      ? [{ cid: LOGO, filename: `logo.${brand.logo.type}`, content: Buffer.from(brand.logo.base64, 'base64') }]
      : [],
  };
}

/** The `Content-ID` of the logo. It is attached to the mail, so that mail programs load nothing from the web. */
const LOGO = 'logo@brand';
const LOGO_HEIGHT = 32;
/** A wider logo is scaled down to this width, so that a phone shows all of it. */
const MAX_LOGO_WIDTH = 240;

function scaled({ width, height }: { readonly width: number; readonly height: number }) {
  const scale = Math.min(LOGO_HEIGHT / height, MAX_LOGO_WIDTH / width);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}
const VIEW = fileURLToPath(new URL('../../../views/mail/letter.ejs', import.meta.url));
const OPTIONS = { cache: true, strict: true, destructuredLocals: ['page', 't'] };

function blockText(t: Texts, block: Block): string {
  const plain = (what: Fact[1]): string => (typeof what === 'object' && 'iso' in what ? t.moment(what) : t.plain(what));
  if ('facts' in block) return block.facts.map(([label, value]) => `${t(label)}: ${plain(value)}`).join('\n');
  if ('items' in block) return block.items.map((item) => `- ${t.plain(item)}`).join('\n');
  if ('small' in block) return t(block.small);
  return 'button' in block ? `${t(block.button)}:\n${block.url}` : t(block);
}

/** Adds `brand` to messages, and cleans texts: a user's text must not add lines or change the text direction. */
function prepared<Kind>(what: Kind, brand: string): Kind {
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return clean(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    if ('key' in value) return { ...value, values: walk({ brand, ...(value as Message).values }) };
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one)]));
  };
  return walk(what) as Kind;
}

const clean = (text: string): string =>
  Array.from(text, (character) => (INVISIBLE.test(character) ? ' ' : character)).join('');

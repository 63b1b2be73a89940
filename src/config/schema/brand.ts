/** The settings `brand` and `rights`: the operator's name, look and words on pages and in mail. */
import { z } from 'zod';
import { isMailbox } from '../../texts/mailbox.ts';
import { PRODUCT } from '../../texts/name-rules.ts';
import { isPageUrl, PAGE_URL } from './connected.ts';
import { expectations, text } from './kinds.ts';
import { reloadable, section } from './setting.ts';

/** The languages of the pages. */
const LANGUAGES = ['en', 'de'];
/** False for a line with control characters, or with characters that change the direction of the text around it. */
const isLine = (line: string): boolean => /^[^\p{C}]{1,60}$/u.test(line) && /\S/.test(line);
const LINE = 'a text of 1 to 60 visible characters';

type Expectation = readonly [accepts: string, example: string];

const optional = ([accepts, example]: Expectation, isValid: (value: string) => boolean, about: string) =>
  reloadable(text({ accepts, example }, isValid).exactOptional(), { about });

/** Accepts one text, or an object with a text for some of the languages. */
const inLanguages = ([accepts, example]: Expectation, isValid: (value: string) => boolean) =>
  z
    .union([z.string().trim(), z.record(z.string(), z.string().trim())])
    .refine((value) => {
      const entries = typeof value === 'string' ? [['en', value]] : Object.entries(value);
      return entries.length > 0 && entries.every(([key = '', line = '']) => LANGUAGES.includes(key) && isValid(line));
    })
    .register(expectations, {
      accepts: `${accepts}, or one for each of ${LANGUAGES.join(', ')}`,
      example,
    });

const logo = (file: string, about: string) =>
  optional(['a path', `the path of a PNG or WebP file, such as \`${file}\``], (name) => !name.includes('\0'), about);

const page = (name: string, what: string) =>
  reloadable(inLanguages([PAGE_URL, `\`https://www.example.com/${name}\``], isPageUrl).exactOptional(), {
    about: `${what}, linked in the footer of each page. Default: none.`,
  });

export const brand = section('The brand that users see: name, logo, colour and links (docs/operations/brand.md).', {
  name: reloadable(inLanguages([LINE, '`Acme`'], isLine).default(PRODUCT), {
    about: 'Name of the service on pages and in mail. Client names that could be mistaken for it are refused.',
  }),
  logo: logo(
    'logo.png',
    'PNG or WebP file with your logo, at most 100 kB, relative to the directory of the settings ' +
      'file. Default: the picture of a gatehouse.',
  ),
  logo_dark: logo('logo-dark.png', 'Like logo, for dark pages. Default: the same as logo.'),
  colour: optional(
    ['a colour of # and six hexadecimal digits', '`"#0b5cad"`, with the quotes, because # begins a comment'],
    (colour) => /^#[0-9a-f]{6}$/i.test(colour),
    'Colour of links and buttons; dark pages use a lighter shade. A colour that is hard to read ' +
      'on light pages (WCAG AA) is refused. Default: a dark green.',
  ),
  home_url: page('', 'Your website'),
  support: reloadable(
    inLanguages(
      [`an email address or ${PAGE_URL}`, '`help@example.com` or `https://www.example.com/help`'],
      (contact) => isMailbox(contact) || isPageUrl(contact),
    ).exactOptional(),
    { about: 'Where users get help, linked in the footer of pages and mails. Default: none.' },
  ),
  privacy_url: page('privacy', 'Your privacy policy'),
  terms_url: page('terms', 'Your terms of service'),
});

const right = (name: string, en: string, de: string) =>
  reloadable(inLanguages([LINE, `\`${en}\` or \`{ en: ${en}, de: ${de} }\``], isLine).exactOptional(), {
    about: `Words for the right \`${name}\`. Default: ${en}, in German ${de}.`,
  });

export const rights = section('What users read in place of the names of rights. Tokens and commands keep the names.', {
  read: right('read', 'see', 'ansehen'),
  write: right('write', 'change', 'ändern'),
  manage: right('manage', 'manage', 'verwalten'),
});

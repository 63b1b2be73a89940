/** All mails to people, sent to a real mail server: languages, HTML, hostile names, brand, looks. */
import { expect } from 'chai';
import { pino } from 'pino';
import { leakMail, noticeMail, problemsMail } from '../../src/accounts/mail/account-mail.ts';
import type { Letter, MailBrand } from '../../src/accounts/mail/letter.ts';
import { createBackgroundMail, createSendMail } from '../../src/accounts/mail/mail.ts';
import { passwordMail } from '../../src/accounts/password-links/link-mail.ts';
import { message } from '../../src/base/message.ts';
import { SECRET_KINDS } from '../../src/base/random-id.ts';
import { textsFor } from '../../src/texts/texts.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { type MailServer, type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { PSEUDO, pseudoLanguage } from '../support/pseudo-language.ts';

const ISSUER = 'https://gate.example.test';
const BRAND = { name: 'Acme & Söhne', support: 'help@acme.example' };
const AT = new Date('2026-11-21T04:23:10.000Z');
const FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0';
const HOSTILE = `"><script>alert(1)</script>'\r\nBcc: thief@evil.test\r\n\r\n\u202eevil`;
const NOTICES = [
  'recovered',
  'method_added',
  'account_linked',
  'method_removed',
  'unrecognized_ended',
  'password_changed',
  'passkey_added',
  'passkey_removed',
  'passkey_copied',
  'new_device',
  'new_connection',
  'silent_authorization',
  'new_api_key',
  'client_renewed',
] as const;
/** Notices that name no app, key or sign-in method. */
const UNNAMED: readonly string[] = ['password_changed', 'new_device', 'unrecognized_ended'];

/** One mail of each shape: the others differ only in their words. */
const SHAPES = new Set(['recovered', 'new_connection', 'link forgotten true']);

/** Returns every mail to this person about this name, by the kind of mail. */
function letters(language: string, about = 'Stock Reports', name = 'Ada'): Map<string, Letter> {
  const account = { name, email: 'ada@example.test', language };
  const all = new Map<string, Letter>();
  for (const what of NOTICES) {
    const more =
      what === 'recovered'
        ? [
            message('mail.kept'),
            {
              items: [message('mail.kept-since', { what: about, since: { iso: AT.toISOString() } })],
            },
          ]
        : [];
    const named = what === 'recovered' ? message('mail.link-forgotten') : about;
    const origin = { address: '192.0.2.7', browser: FIREFOX };
    const from = { issuer: ISSUER, at: AT, origin, about: named, more };
    all.set(what, noticeMail(account, what, from));
  }
  const ours = { issuer: ISSUER, at: AT, about };
  all.set('passkey_removed by the operator', noticeMail(account, 'passkey_removed', ours));
  const path = '/profile/x';
  const items = ['invalid_client', 'invalid_redirect_uri', 'other'].map((error) =>
    message('mail.client_problem-item', { client: about, error }),
  );
  all.set('client_problem', problemsMail(account, { items, path }, ISSUER));
  for (const kind of SECRET_KINDS) {
    const leak = { kind, clientId: 'gate_ci_x', name: about, foundAt: about };
    all.set(`leak ${kind}`, leakMail(account, { ...leak, refusedFrom: AT }, ISSUER));
  }
  for (const [purpose, setsPassword] of [
    ['invitation', true],
    ['forgotten', true],
    ['invitation', false],
  ] as const) {
    const link = { url: `${ISSUER}/password?token=t`, purpose, expiresAt: AT, setsPassword };
    all.set(`link ${purpose} ${setsPassword}`, passwordMail(account, link, ISSUER));
  }
  return all;
}

/** Returns what a reader sees of the HTML. */
const seenIn = (html: string): string =>
  html
    .replace(/^[\s\S]*<h1>/, '<h1>')
    .replace(/<[^>]+>/g, '')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

const words = (text: string): string => text.replace(/\s+/g, ' ').trim();

describe('mails to people are plain text and HTML, accessible, and safe from hostile names', () => {
  let server: MailServer;
  before(async () => {
    server = await startMailServer();
  });

  async function sent(letter: Letter, brand: MailBrand = { name: 'Gatehouse' }): Promise<ReceivedMail> {
    const settings = { smtpUrl: server.url, from: 'gate@localhost' };
    await createSendMail(settings, brand)(letter);
    const mail = server.received.at(-1);
    if (!mail) throw new Error('no mail arrived');
    return { ...mail, text: mail.text.replaceAll('\r\n', '\n') };
  }

  it('every mail is plain text and HTML that say the same, loads nothing, and links only to the issuer and the brand', async () => {
    const brand = { ...BRAND, homeUrl: 'https://acme.example/' };
    for (const language of ['de', 'en']) {
      const t = textsFor(language);
      for (const [what, letter] of letters(language)) {
        const { raw, text, html, to } = await sent(letter, brand);
        expect(to, what).to.deep.equal(['ada@example.test']);
        expect(raw).to.match(/^Content-Type: multipart\/alternative;/m);
        expect(html).to.match(new RegExp(`^<!doctype html>\\s*<html lang="${language}">`));
        expect(text).to.include(t('common.hello', { name: 'Ada' }));
        const seen = words(seenIn(html));
        expect(seen).to.include(t(letter.subject.key, { brand: BRAND.name, ...letter.subject.values }));
        for (const line of text.split('\n')) {
          // The address of the button's page is not shown.
          const shown = words(line.replace(/^- /, '').replace(/:$/, ''));
          const isUrl = /^https:\S+$/.test(shown);
          if (isUrl) expect(html, what).to.include(`href="${shown}"`);
          else if (shown !== '--') expect(`${seen} ${BRAND.name}`, what).to.include(shown);
        }
        expect(html.match(/class="button"/g), what).to.have.length(1);
        const addresses = `${text}\n${html}`.match(/https?:\/\/[^\s"<]+/g) ?? [];
        const others = addresses.filter((url) => !url.startsWith(ISSUER) && !url.startsWith(brand.homeUrl));
        expect(others, what).to.deep.equal([]);
        expect(html).to.not.match(/<(?:img|script|link|iframe|object|form|table)\b|url\(|@import|\bsrc=/i);
        for (const href of ['mailto:help@acme.example', brand.homeUrl]) expect(html).to.include(`href="${href}"`);
        expect(text).to.include('\n\n-- \nAcme & Söhne\nhttps://acme.example/\nhelp@acme.example');
        if (!what.startsWith('link')) expect(seen).to.include('ada@example.test');
        if (!UNNAMED.includes(what) && !what.startsWith('link')) expect(seen, what).to.include('Stock Reports');
      }
    }
  });

  it('a mailed notice shows the device, place and time of a change, or that the administrator made the change', async () => {
    const german = letters('de');
    const { text } = await sent(german.get('new_device') as Letter, BRAND);
    expect(text).to.include(
      [
        'Zeitpunkt: 21.11.2026, 04:23 UTC',
        'Gerät: Firefox, Windows',
        'Ort: IP-Adresse 192.0.2.7',
        `Konto: ada@example.test bei ${ISSUER}`,
      ].join('\n'),
    );
    const ours = await sent(letters('en').get('passkey_removed by the operator') as Letter);
    expect(ours.text).to.include('Done by: Your administrator').and.not.include('Device');
    expect(ours.raw).to.include('Subject: A passkey was removed from your Gatehouse account');
  });

  it('mails have the colour and the logo of the brand; the logo is a part of the mail, so nothing is loaded', async () => {
    const base64 = Buffer.from('a picture').toString('base64');
    const logo = { type: 'png', width: 128, height: 64, base64 };
    const { raw, html, text } = await sent(letters('en').get('new_device') as Letter, {
      ...BRAND,
      colour: '#0b5cad',
      logo,
    });
    expect(html).to.include('<img src="cid:logo@brand" alt="" width="64" height="32"');
    for (const [width, height, shown] of [
      [4_000, 32, 'width="240" height="2"'],
      [1, 4_000, 'width="1" height="32"'],
    ] as const) {
      const odd = await sent(letters('en').get('new_device') as Letter, { ...BRAND, logo: { ...logo, width, height } });
      expect(odd.html).to.include(shown);
    }
    expect(html).to.match(/class="button"[^>]*background: #0b5cad/);
    expect(html).to.not.match(/\bsrc="(?!cid:)/);
    expect(raw)
      .to.match(/^Content-ID: <logo@brand>/im)
      .and.include(base64);
    expect(text).to.include('You can switch off emails like this one');
    // What lists of mails show behind the subject.
    expect(html.indexOf(textsFor('en')(message('mail.new_device', { brand: BRAND.name })))).to.be.below(
      html.indexOf('<h1>'),
    );
  });

  it('a hostile name cannot add a header, a line, markup or reversed text to a mail', async () => {
    for (const [what, letter] of letters('en', HOSTILE, HOSTILE)) {
      const { raw, text, html, to } = await sent(letter, { name: HOSTILE });
      expect(to, what).to.deep.equal(['ada@example.test']);
      const [headers = ''] = raw.split('\r\n\r\n');
      expect(headers, what).to.not.match(/^Bcc:/im);
      expect(html)
        .to.not.match(/<script|\u202e/)
        .and.to.not.match(/^Bcc/m);
      expect(html).to.include('&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;');
      expect(text).to.not.match(/\u202e|^Bcc/m);
    }
  });

  it('all words of a mail come from the language files', async () => {
    await pseudoLanguage(async () => {
      for (const [what, letter] of letters(PSEUDO, '7', '7')) {
        const { html } = await sent(letter, { name: '7' });
        const outside = seenIn(html.replaceAll('ada@example.test', ''))
          .replaceAll(/\[!![\s\S]*?!!\]/g, '')
          .replaceAll(/Firefox, Windows|Nov 21, 2026|UTC|https:\S+/g, '');
        expect(outside.match(/[A-Za-z]{3,}/g), what).to.equal(null);
      }
    });
  });

  describeInBrowser('mails in a mail program', (visit) => {
    it('mails are accessible in light mode and in dark mode', async () => {
      const { page, problems } = await visit(PHONE);
      const requests: string[] = [];
      page.on('request', (request) => requests.push(request.url()));
      for (const [what, letter] of letters('de', 'Stock-Reports-'.repeat(6))) {
        if (!SHAPES.has(what)) continue;
        const { html } = await sent(letter, BRAND);
        await page.setContent(html);
        await expectAccessible(page, what);
      }
      expect(requests).to.deep.equal([]);
      expect(problems).to.deep.equal([]);
    });
  });
});

describe('mails in the background', () => {
  it('mails that anyone can request never displace notices to users', async () => {
    const outcomes: string[] = [];
    const mail = createBackgroundMail({
      log: pino({ enabled: false }),
      outcomes: { mailed: (outcome) => outcomes.push(outcome) },
    });
    const slowServer = Promise.withResolvers<boolean>();
    const send = () => slowServer.promise;
    const asked = Array.from({ length: 200 }, () => mail.begin('a link', send, 'anyone'));
    const notices = Array.from({ length: 50 }, () => mail.begin('a notice', send));
    slowServer.resolve(true);
    expect((await Promise.all(notices)).filter(Boolean)).to.have.lengthOf(50);
    expect((await Promise.all(asked)).filter(Boolean)).to.have.lengthOf(50);
    expect(outcomes.filter((outcome) => outcome === 'dropped')).to.have.lengthOf(150);
  });
});

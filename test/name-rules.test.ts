import { expect } from 'chai';
import { FORMS, randomId, SECRET_KINDS } from '../src/base/random-id.ts';
import { checkClientName } from '../src/clients/client-rules.ts';
import { holdsReserved, lookOf, reservedWords, variantTest } from '../src/texts/name-rules.ts';
import { languages, textsFor } from '../src/texts/texts.ts';

describe('the key of a name, which is the same for similar-looking names', () => {
  it('names that look alike have the same key', () => {
    const look = lookOf('Storm Billing');
    // Written with a capital i, small l's, a zero, Cyrillic and full-width letters, accents, and no space.
    const alike = namesIn(`
      Storm BiIling, STORM BlLLlNG, St0rm Bi11ing, Stоrm Вilling, Ｓtorm-Billing, Štörm Billíng, stormbilling, Storrn Billing`);
    for (const name of alike) expect(lookOf(name), name).to.equal(look);
  });

  it('different names have different keys, in every writing system', () => {
    const names = ['Storm Billing', 'Storm Building', 'की', 'का', 'かき', 'がぎ', '★', '☆', 'Склад'];
    expect(new Set(names.map(lookOf)).size).to.equal(names.length);
  });
});

describe('names reserved for the service', () => {
  it('every name that contains the name of the product or of the issuer’s domain is reserved', () => {
    const reserved = reservedWords('https://auth.stormworks.co.uk');
    for (const name of ['Gatehouse Security', 'Gâte-House', 'GATEH0USE', 'GatehouseX', 'My StormWorks login']) {
      expect(holdsReserved(name, reserved), name).to.equal(true);
    }
    for (const name of ['Gate keeper', 'House of storms', 'Auth helper', 'Company']) {
      expect(holdsReserved(name, reserved), name).to.equal(false);
    }
  });

  it('a short name in the issuer URL is reserved as a separate word, but not within another word', () => {
    const reserved = reservedWords('https://login.abb.example');
    expect(holdsReserved('ABB tools', reserved)).to.equal(true);
    expect(holdsReserved('Rabbit', reserved)).to.equal(false);
  });

  it('only the name of the product is reserved if the issuer has no domain name', () => {
    for (const issuer of ['http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000']) {
      expect(reservedWords(issuer), issuer).to.have.length(1);
    }
  });
});

/** Returns the names of a list, which are separated by commas. */
const namesIn = (list: string): readonly string[] => list.trim().split(/,\s+/);
const withMarks = (marks: string): readonly string[] => marks.split(' ').map((mark) => `Storm ${mark}`);

/** Names by the code of their refusal. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  name_reserved: [
    ...namesIn(`
      Verified ✔ App, Checked by the operator, (official), Operator, Support, Storm Support, VERIFIED storm,
      V e r i f i e d, Veri-fied Storm, Vérífïed Storm, Ⅴｅｒｉｆｉｅｄ, Ver1f1ed, Official24, ⓥⓔⓡⓘⓕⓘⓔⓓ, Storm_Official,
      StormOfficial, verifiedapp, OfficialStorm, Geprüfte App, GEPRUEFT, Vom Betreiber, Offizielle Anbindung,
      🅥🅔🅡🅘🅕🅘🅔🅓, 🇻🇪🇷🇮🇫🇮🇪🇩 Storm, ᴠᴇʀɪꜰɪᴇᴅ Acme, Acme Vᴇrified, Veʀified, ꜰᴏᴏ.ᴄᴏᴍ, Verıfied, Verɩfied, Officia|,
      Off|cial Storm, Verif¡ed, Verif!ed, Verified!, verifiedacme, xeroverified, Sun Official, Vérifié, Verificado,
      Oficial, Официальный, 公式, 认证, 官方アプリ`),
    ...withMarks('✔ ✓ ☑ ✅ 🗸 🗹 🮱 √ 🛡 ⛨ 🔒 🔐'),
    ...withMarks('🆗 ⛊ ⛉ ⎷ 🔑 ⚿ ✪ 🎖'),
  ],
  name_address: namesIn(`
    evil.example/login, evil。com, evil｡com, evil．com, evil․com, ⓔⓥⓘⓛ.ⓒⓞⓜ, shop.co.uk, Sign in at evil.example, storm.gmbh,
    storm.zuerich., пример.рф, 例子.中国, xn--e1afmkfd.xn--p1ai, a.onion, nas.local, app.internal, mail@storm.engineering,
    evil@localhost, https:⁄⁄storm, evil . com, evil·com, evil‧com, evil•com, evil[.]com, Storm at 192.168.1.1`),
  name_secret: SECRET_KINDS.map((kind) => randomId(FORMS[kind].prefix, FORMS[kind].minLength)),
};

/** Names that resemble the refused ones, and are accepted. */
const ACCEPTED = namesIn(`
  Node.js App, Version 2.0, Stock v2.10, St.Petersburg, A.P. Moller, Acme Inc. App, Storm S.p.A., 東京。大阪, Checkout,
  Checklists, Cooperator, Netzbetreiber, Unofficial Storm, Inoffizielle App, Supportive Care, Storm™ and Storm®,
  Storm .NET, Storm · Online, Storm 1.2.3, Əliyev, My App, Accounting, gate_rt_ tester, gate_ci_0000000000000000000000,
  gate_key_nightly-export`);

describe('names that mislead their readers', () => {
  for (const [code, names] of Object.entries(REFUSED)) {
    it(`names are refused with the code "${code}", a cause and a remedy`, () => {
      for (const name of names) {
        const [problem] = checkClientName(name);
        expect(problem, name).to.include({ code });
        expect(problem?.message, name).to.match(/\w.*[.:] ?.*\w/);
      }
    });
  }

  it('a harmless name is accepted, even if it resembles a refused name', () => {
    for (const name of ACCEPTED) expect(checkClientName(name), name).to.deep.equal([]);
  });

  it('no client name may contain a word with which pages of any language describe a client as verified or official', () => {
    for (const language of languages()) {
      const t = textsFor(language);
      const words = t('names.reserved-words').split(/\s+/).concat(t('consent.verified'));
      expect(words.length, language).to.be.greaterThan(5);
      for (const word of words) {
        expect(checkClientName(`${word} 24`)[0], word).to.include({ code: 'name_reserved' });
      }
      expect(t('names.generic-words').split(/\s+/).length, language).to.be.greaterThan(20);
    }
  });
});

describe('the name of a verified client is reserved, even with added generic words', () => {
  const isLike = (name: string, verified: string) => variantTest(name)(lookOf(verified));

  it('the name of a verified client plus generic words is reserved for that client in every spelling', () => {
    for (const name of namesIn(`
      Xero App, My Xero, Xero for Accounting, XeroApp, my-xero-login, Xéro – die App, XER0 Konto, X\u0435r\u043e App,
      Xero™, Xero 2, Xero2.0 App`)) {
      expect(isLike(name, 'Xero'), name).to.equal(true);
    }
  });

  it('a name with a distinct word is allowed; a verified client with a short or generic name blocks no name', () => {
    for (const [verified, ...names] of [
      ['Xero', 'Xerox App', 'Xero Storm', 'Storm for Xero', 'My App', 'Unofficial Xero'],
      ['Go', 'Togo App'],
      ['X', 'X3'],
      ['Accounting', 'Accounting App'],
      ['Accounting App', 'My Accounting App'],
    ] as const) {
      for (const name of names) expect(isLike(name, verified), name).to.equal(false);
    }
  });
});

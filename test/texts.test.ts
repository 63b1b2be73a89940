/** The texts of people's pages and mails: the same keys everywhere, and all of them in use. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { message } from '../src/base/message.ts';
import { addLanguage, inEnglish, languages, textsFor } from '../src/texts/texts.ts';

const ROOT = path.join(import.meta.dirname, '..');
const english = (): Record<string, Record<string, string>> =>
  parse(readFileSync(path.join(ROOT, 'views/texts/en.yaml'), 'utf8'));
const keys = Object.entries(english()).flatMap(([page, texts]) => Object.keys(texts).map((key) => `${page}.${key}`));
/** Every file that can name a key, except the texts themselves. */
const sources = ['src', 'views']
  .flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|ejs|js)$/.test(name))
      .map((name) => readFileSync(path.join(ROOT, folder, name), 'utf8')),
  )
  .join('\n');
const literals = new Set([...sources.matchAll(/'([a-z-]+\.[\w.-]+)'/g)].map(([, literal]) => literal));

/** Returns the keys that no literal and no template of the sources names. */
function unused(all: readonly string[]): string[] {
  const templates = [...sources.matchAll(/`([a-z-]+\.[^`\s]*\$\{[^`\s]*)`/g)].map(
    ([, template = '']) => new RegExp(`^${template.replace(/\$\{[^}]*\}/g, '[\\w-]+')}$`),
  );
  return all.filter((key) => !literals.has(key) && !templates.some((template) => template.test(key)));
}

/** Adds English with this change as another language. */
function addChanged(change: (texts: Record<string, Record<string, string>>) => void): void {
  const texts = english();
  expect(languages(), 'read the files first').to.include('en');
  change(texts);
  addLanguage('xx', texts)();
}

describe('every language has exactly the texts that the pages use', () => {
  it('each key of a text is used by a page, a partial or a source file', () => {
    expect(unused(keys), 'remove it from every file of views/texts').to.deep.equal([]);
    expect(unused(['sign-in.nothing-uses-this'])).to.have.length(1);
  });

  it('every text key in the sources exists in views/texts', () => {
    const named = [...sources.matchAll(/\b(?:t|t\.parts|message)\(\s*'([^']+)'/g)].map(([, key = '']) => key);
    expect(named.length).to.be.above(50);
    expect(
      named.filter((key) => !keys.includes(key)),
      'add it to every file of views/texts',
    ).to.deep.equal([]);
  });

  it('a language with a missing key, or with one that English does not have, is refused', () => {
    const without = () => addChanged((texts) => delete texts['sign-in']?.title);
    expect(without).to.throw('texts in xx: no sign-in.title');
    const more = () => addChanged((texts) => Object.assign(texts['sign-in'] ?? {}, { x: 'x' }));
    expect(more).to.throw('sign-in.x is not in English');
  });

  const changed: readonly (readonly [what: string, text: string, problem: string])[] = [
    ['another argument', 'to <bdi>{client}</bdi>', '<bdi>,{client} instead of <bdi>,{app}'],
    ['no tag', 'to {app}', 'purpose has {app} instead of <bdi>,{app}'],
    ['a tag that no page prints', 'to <bdi>{app}</bdi><i>x</i>', 'must not have <i>'],
    ['an argument named like a tag', 'to <bdi>{app}{code}</bdi>', 'must not have {code}'],
    ['other choices', '<bdi>{app, select, a {x} other {y}}</bdi>', '{app: a|other}'],
    ['a syntax error', 'to <bdi>{app</bdi>', 'sign-in.purpose: '],
  ];
  for (const [what, text, problem] of changed) {
    it(`a message with ${what} is refused`, () => {
      const change = () => addChanged((texts) => Object.assign(texts['sign-in'] ?? {}, { purpose: text }));
      expect(change).to.throw(problem);
    });
  }

  it('an unknown key and a missing value are errors', () => {
    const t = textsFor('en');
    expect(() => t('sign-in.no-such-key')).to.throw('there is no text sign-in.no-such-key');
    expect(() => t('Sign in')).to.throw('there is no text Sign in');
    expect(() => t('sign-in.purpose')).to.throw('app');
    expect(() => t.parts('sign-in.forgot')).to.throw('needs the attributes of its link');
  });

  it('an unknown language is answered in English', () => {
    expect(textsFor('tlh').language).to.equal('en');
    expect(textsFor(undefined).language).to.equal('en');
  });

  it('messages and times within a message are in the language of this message', () => {
    const first = message('sign-in.the-passkey', { name: 'Laptop' });
    const whole = message('sign-in.or-method', { first, second: 'ID' });
    expect(inEnglish(whole)).to.equal(`${inEnglish(first)} or ID`);
    const inGerman = textsFor('de')(JSON.parse(JSON.stringify(whole)));
    expect(inGerman)
      .to.equal(`${textsFor('de')(first)} oder ID`)
      .and.not.include(inEnglish(first));
    const until = { iso: '2026-11-21T04:23:10.000Z' };
    expect(textsFor('en')('sign-in.password-soon-weak', { until })).to.include('From 21 Nov 2026, 04:23 UTC a');
    expect(textsFor('de')('sign-in.password-soon-weak', { until })).to.include('Ab 21.11.2026, 04:23 UTC');
  });

  it('values are never read as markup or as a message', () => {
    const parts = textsFor('en').parts('sign-in.purpose', { app: '<b>{x}</b>' });
    expect(parts).to.deep.equal(['to continue to ', { tag: 'bdi', attributes: {}, parts: ['<b>{x}</b>'] }]);
  });

  it('a plural form follows the number, and text from a user is not translated', () => {
    const t = textsFor('de');
    expect(t('connections.disconnect-all-heading', { count: 1 })).to.equal('Ihre App trennen?');
    expect(t('connections.disconnect-all-heading', { count: 3 })).to.equal('Alle 3 Apps trennen?');
    expect(t.plain('sign-in.title')).to.equal('sign-in.title');
  });
});

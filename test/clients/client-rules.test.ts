import { expect } from 'chai';
import { Refusal } from '../../src/base/refusal.ts';
import {
  checkClientName,
  checkRedirectUris,
  normalizeClientName,
  refuseInvalidClient,
} from '../../src/clients/client-rules.ts';
import { wordsOf } from '../support/words.ts';
import { partner } from './drafts.ts';

const web = { native: false };
const UNDISPLAYABLE = 'App\0 App\u202Eppa App\u2066x App\u200Bx App\u3164x App\uD800';
const uriNumber = (number: number) => `https://app.example/${number}`;
const found = (uris: readonly string[]) =>
  checkRedirectUris(uris, web).problems.map(({ index, code }) => [index, code]);

describe('list of redirect URIs', () => {
  it('one to twenty distinct redirect URIs are accepted; none, or more than twenty, are refused', () => {
    const many = Array.from({ length: 21 }, (_, number) => uriNumber(number));
    for (const uris of [many.slice(0, 1), many.slice(0, 20)]) {
      expect(checkRedirectUris(uris, web)).to.deep.equal({ problems: [], warnings: [] });
    }
    expect(checkRedirectUris([], web).problems).to.have.nested.property('[0].code', 'none');
    expect(checkRedirectUris(many, web).problems).to.have.nested.property('[0].code', 'too_many');
  });

  it('each invalid redirect URI has its own problem, and a repeated URI is refused, not merged', () => {
    const uris = [uriNumber(1), 'https://app.example/*', uriNumber(1), '', 'http://App.example/'];
    expect(found(uris)).to.deep.equal([
      [1, 'wildcard'],
      [2, 'duplicate'],
      [3, 'blank'],
      [4, 'spelling'],
    ]);
  });

  it('a URI that browsers send exactly like another URI of the list is a duplicate', () => {
    const upper = 'https://App.example/1';
    const second = [1, 'duplicate'];
    expect(found([upper, uriNumber(1)])).to.deep.equal([[0, 'duplicate']]);
    expect(found([uriNumber(1), 'https://app.example:443/1'])).to.deep.equal([second]);
    expect(found([upper, 'https://APP.example/1'])).to.deep.equal([[0, 'spelling'], second]);
    expect(found([upper, uriNumber(2)])).to.deep.equal([[0, 'spelling']]);
  });

  it('an origin with and one without a slash at its end are duplicates: the second is refused', () => {
    for (const uris of [
      ['https://app.example', 'https://app.example/'],
      ['https://app.example/', 'https://app.example'],
      ['https://app.example?a=1', 'https://app.example/?a=1'],
    ]) {
      const [found, ...others] = checkRedirectUris(uris, web).problems;
      expect(found, uris.join()).to.include({ code: 'duplicate', index: 1 });
      expect(found?.message).to.equal('Remove it: as browsers send it, it is row 1 again.');
      expect(others).to.deep.equal([]);
    }
  });

  it('two URIs that differ only by a slash at the end are accepted with a warning', () => {
    const found = checkRedirectUris(['https://app.example/cb', 'https://app.example/cb/'], web);
    expect(found.problems).to.deep.equal([]);
    expect(found.warnings.map(({ index, code }) => [index, code])).to.deep.equal([[0, 'slash_twin']]);
  });
});

describe('client name', () => {
  it('a client name may be any displayable text of up to 100 characters', () => {
    const html = '<img src=x onerror=alert(1)>';
    const others = ['東京 Stock', 'ストアとTest', '서울 Sync', 'Склад', 'مخزن', 'हिन्दी ज़ाँ', 'Việt', 'ᾄδω'];
    const dotted = ['Node.js sample', 'Acme Inc.', 'A.P. Moller', 'Stock v2.0', 'St.Petersburg'];
    const plain = ['A', 'Bücher & Söhne', '在庫アプリ', html, 'a'.repeat(100)];
    for (const name of plain.concat(others, dotted)) {
      expect(checkClientName(name), name).to.deep.equal([]);
    }
  });

  for (const [code, names] of Object.entries({
    name_missing: ['', ' \t\n '],
    name_too_long: ['a'.repeat(101), 'a'.repeat(10_000)],
    name_character: ['App\nname', '\u3164', 'a\uffa0b', '\u2800', ...wordsOf(UNDISPLAYABLE)],
    name_marks: ['Z\u0338\u0321\u0322x', 'e\u0301\u0302\u0303', '\u0e01\u0e47\u0e47\u0e47'],
    // Names with Cyrillic, Greek and Cherokee letters that look like Latin letters.
    name_scripts: ['\u0430dmin', 'St\u03bfrm', 'S\u13a2nc', '\u0421клад A'],
    name_address: ['https://x', 'www.storm', 'Booking.com', 'ops@storm.de', 'Ａcme．com', 'xn--x.xn--y'],
  })) {
    it(`invalid client names are refused with the code "${code}"`, () => {
      for (const name of names) {
        const [problem] = checkClientName(name);
        expect(problem, JSON.stringify(name.slice(0, 20))).to.include({ code });
      }
    });
  }

  it('an unchanged client name is not checked; a name set by the operator only has to be displayable', () => {
    expect(checkClientName('\u3164', 'as before')).to.deep.equal([]);
    expect(checkClientName('Booking.com', 'by the operator')).to.deep.equal([]);
    expect(checkClientName('\u3164', 'by the operator')).to.have.length(1);
  });

  it('a client name is stored without surrounding space and with composed characters', () => {
    expect(normalizeClientName('  Bu\u0308cher ')).to.equal('Bücher');
  });
});

describe('client draft', () => {
  const codesOf = (overrides: object): string[] => {
    try {
      refuseInvalidClient({ ...partner, ...overrides });
      return [];
    } catch (error) {
      return error instanceof Refusal ? error.problems.map(({ code }) => code) : [String(error)];
    }
  };

  it('a refused client gets a list of all its problems', () => {
    expect(codesOf({})).to.deep.equal([]);
    const codes = codesOf({ name: '', redirectUris: ['x', 'https://y.example/*'] });
    expect(codes).to.deep.equal(['name_missing', 'not_a_url', 'wildcard']);
  });

  it('machine clients and resource servers cannot have redirect URIs', () => {
    for (const kind of ['machine', 'resource-server']) {
      expect(codesOf({ kind })).to.deep.equal(['redirect_uris_unused']);
      expect(codesOf({ kind, redirectUris: [] })).to.deep.equal([]);
    }
  });

  it('only a public client can be native', () => {
    expect(codesOf({ isNative: true })).to.deep.equal(['native_not_public']);
    const redirectUris = ['com.example.app:/cb'];
    expect(codesOf({ kind: 'public', isNative: true, redirectUris })).to.deep.equal([]);
    expect(codesOf({ kind: 'public', redirectUris })).to.deep.equal(['scheme']);
  });
});

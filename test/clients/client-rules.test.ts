/** Rules for the names, redirect URIs and drafts of clients. */
import { expect } from 'chai';
import { Refusal } from '../../src/base/refusal.ts';
import {
  checkClientName,
  checkRedirectUris,
  normalizeClientName,
  refuseInvalidClient,
} from '../../src/clients/client-rules.ts';
import { redirectUriProblem, redirectUriWarnings } from '../../src/clients/redirect-uri-rules.ts';
import { wordsOf } from '../support/words.ts';
import { partner } from './drafts.ts';

const web = { native: false };
const UNDISPLAYABLE = 'App\0 App\u202Eppa App\u2066x App\u200Bx App\u3164x App\uD800';
const uriNumber = (number: number) => `https://app.example/${number}`;
const found = (uris: readonly string[]) =>
  checkRedirectUris(uris, web).problems.map(({ index, code }) => [index, code]);

describe('a list of redirect URIs must contain one to twenty valid, distinct URIs', () => {
  it('one to twenty distinct redirect URIs are accepted; none, or more than twenty, are refused', () => {
    const many = Array.from({ length: 21 }, (_, number) => uriNumber(number));
    for (const uris of [many.slice(0, 1), many.slice(0, 20)]) {
      expect(checkRedirectUris(uris, web)).to.deep.equal({ problems: [], warnings: [] });
    }
    expect(checkRedirectUris([], web).problems).to.have.nested.property('[0].code', 'none');
    expect(checkRedirectUris(many, web).problems).to.have.nested.property('[0].code', 'too_many');
  });

  it('each invalid redirect URI gets its own error, and a repeated URI is refused, not merged', () => {
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

  it('the same origin with and without a slash at its end is a duplicate: the second one is refused', () => {
    for (const uris of [
      ['https://app.example', 'https://app.example/'],
      ['https://app.example/', 'https://app.example'],
      ['https://app.example?a=1', 'https://app.example/?a=1'],
    ]) {
      const [found, ...others] = checkRedirectUris(uris, web).problems;
      expect(found, uris.join()).to.include({ code: 'duplicate', index: 1 });
      expect(found?.message).to.equal('Remove this redirect URI: browsers send it exactly like the one in row 1.');
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

describe('a client draft must satisfy every rule for its kind of client', () => {
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

const native = { native: true };

describe('redirect URI rules', () => {
  itAccepts(
    web,
    `https://app.example/callback https://app.example https://app.example?from=gatehouse
      https://app.example:8443/ https://app.example/a//b/c.d;v=1/~e?next=%2Fhome&x=
      https://xn--bcher-kva.example/cb https://app.example/@team/cb https://app.example/...
      https://app.example/cb?mail=a@b.example http://app.example/callback
      http://localhost:3000/callback http://127.0.0.1/cb http://[::1]:8080/cb https://10.0.0.1/cb
      https://app.example/${'a'.repeat(1979)}`,
  );
  itRefuses(web, {
    blank: [''],
    too_long: `https://app.example/${'a'.repeat(1980)}`,
    character: [
      ' https://app.example/cb',
      'https://app.example/cb ',
      'https://app.example/a b',
      'https://app.example/cb\r\nX: y',
      ...wordsOf(`https://app.example/cb\0 https://app.example\\@evil.example/cb
        https://app.example/{tenant}/cb https://app.example/"><script> https://bücher.example/cb
        https://\u0430pp.example/cb https://app.example/bc\u202Ecod https://app.example/\u200Bcb
        https://app.example/\uD800`),
    ],
    wildcard: 'https://*.app.example/cb https://app.example/* https://app.example/cb?x=*',
    fragment: 'https://app.example/cb# https://app.example/cb#part',
    escape: 'https://app.example/cb%00 https://app.example/cb?x=%0d%0a https://app.example/100%',
    not_a_url: `app.example/callback /callback //app.example/callback https://
      https://app.example:99999/`,
    scheme: `javascript:alert(1) data:text/html,hello vbscript:x file:///etc/passwd
      blob:https://app.example/1 ftp://app.example/cb com.example.app:/cb`,
    userinfo: `https://user@app.example/cb https://user:word@app.example/cb
      https://@app.example/cb`,
    dot_segment: `https://app.example/../cb https://app.example/a/./b https://app.example/a/..
      https://app.example/%2e%2E/cb`,
    response_parameter: `https://app.example/cb?code=1 https://app.example/cb?state
      https://app.example/cb?keep=1&iss=x https://app.example/cb?error=x
      https://app.example/cb?%63ode=1`,
    spelling: `HTTPS://app.example/cb https://App.example/cb https://app.example:443/cb
      http://app.example:80/cb https:///app.example/cb https:app.example/cb http://127.1/cb
      http://2130706433/cb http://127.0.0.1:/cb https://app.example/it's?it's`,
  });

  it('the message for a host name that is not ASCII says how to write it', () => {
    expect(redirectUriProblem('https://bücher.example/cb', web)?.message).to.include(
      'https://xn--bcher-kva.example/cb',
    );
  });

  it('the error for a refused redirect URI shows how browsers would write the URI', () => {
    const messages = [
      ['https://App.example/cb', /lower case: https:\/\/app\.example\/cb$/],
      ['HTTPS://app.example/cb', /lower case: https:\/\/app\.example\/cb$/],
      ['https://app.example:443/cb', /default port :443: https:\/\/app\.example\/cb$/],
      ['http://app.example:80/cb', /default port :80: http:\/\/app\.example\/cb$/],
      ['https://app.example:0443/cb', /default port :0443: /],
      ["https://app.example/it's?it's", /the way browsers send it: /],
    ] as const;
    for (const [uri, message] of messages) {
      expect(redirectUriProblem(uri, web)?.message, uri).to.match(message);
    }
  });
});

describe('redirect URI rules of native clients', () => {
  itAccepts(
    native,
    `com.example.app:/cb com.example.app://callback http://127.0.0.1/cb http://127.0.0.1:51004/cb
      http://[::1]/cb http://localhost/cb https://app.example/cb`,
  );
  itRefuses(native, {
    private_scheme: 'myapp:/cb myapp://cb com.example.app:cb javascript:alert(1)',
    loopback: `http://10.0.0.1/cb http://app.example/cb http://127.0.0.2/cb
      http://localhost.app.example/cb https://127.0.0.1/cb https://localhost/cb`,
    userinfo: 'http://user@127.0.0.1/cb com.example.app://user@host/cb',
    dot_segment: 'com.example.app:/../cb',
    response_parameter: 'com.example.app:/cb?code=1',
    fragment: 'com.example.app:/cb#x',
    spelling: 'COM.example.app:/cb',
  });
});

describe('redirect URI warnings', () => {
  const warnings = (uri: string, options = web) => redirectUriWarnings(uri, options).map(({ code }) => code);

  it('an https redirect URI causes no warning', () => {
    expect(warnings('https://app.example/cb?keep=1')).to.deep.equal([]);
  });

  it('an http redirect URI on another machine causes a warning', () => {
    expect(warnings('http://app.example/cb')).to.deep.equal(['plain_http']);
    expect(warnings('http://192.168.1.10/cb')).to.deep.equal(['plain_http']);
    expect(warnings('http://app.localhost:3000/cb')).to.deep.equal([]);
  });

  it('localhost in a redirect URI causes a warning for native clients only (RFC 8252 §8.3)', () => {
    expect(warnings('http://localhost/cb', native)).to.deep.equal(['localhost_name']);
    expect(warnings('http://localhost/cb')).to.deep.equal([]);
  });
});

function itAccepts(options: typeof web, uris: string): void {
  it('valid redirect URIs are accepted', () => {
    for (const uri of wordsOf(uris)) expect(redirectUriProblem(uri, options), uri).to.equal(undefined);
  });
}

/** @param refused URIs, keyed by the code of their refusal. */
function itRefuses(options: typeof web, refused: Record<string, string | readonly string[]>): void {
  for (const [code, uris] of Object.entries(refused)) {
    it(`invalid redirect URIs are refused with the code "${code}"`, () => {
      for (const uri of typeof uris === 'string' ? wordsOf(uris) : uris) {
        const problem = redirectUriProblem(uri, options);
        expect(problem, JSON.stringify(uri)).to.have.property('code', code);
        expect(problem?.message).to.match(/^[A-Z]/);
      }
    });
  }
}

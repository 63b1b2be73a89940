import { expect } from 'chai';
import { redirectUriProblem, redirectUriWarnings } from '../../src/clients/redirect-uri-rules.ts';
import { wordsOf } from '../support/words.ts';

const web = { native: false };
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

  it('the message for a refused URI names the part that a browser would spell differently', () => {
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

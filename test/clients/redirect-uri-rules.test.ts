import { expect } from 'chai';
import { redirectUriProblem, redirectUriWarnings } from '../../src/clients/redirect-uri-rules.ts';

const web = { native: false };
const native = { native: true };

describe('redirect URI rules', () => {
  const accepted = [
    'https://app.example/callback',
    'https://app.example',
    'https://app.example?from=gatehouse',
    'https://app.example:8443/',
    'https://app.example/a//b/c.d;v=1/~e?next=%2Fhome&x=',
    'https://xn--bcher-kva.example/cb',
    'https://app.example/@team/cb',
    'https://app.example/cb?mail=a@b.example',
    'https://app.example/...',
    'http://app.example/callback',
    'http://localhost:3000/callback',
    'http://127.0.0.1/cb',
    'http://[::1]:8080/cb',
    'https://10.0.0.1/cb',
    `https://app.example/${'a'.repeat(1979)}`,
  ];
  for (const uri of accepted) {
    it(`accepts ${shown(uri)}`, () => {
      expect(redirectUriProblem(uri, web)).to.equal(undefined);
    });
  }

  const refused: [uri: string, code: string][] = [
    ['', 'blank'],
    [`https://app.example/${'a'.repeat(1980)}`, 'too_long'],
    [' https://app.example/cb', 'character'],
    ['https://app.example/cb ', 'character'],
    ['https://app.example/a b', 'character'],
    ['https://app.example/cb\0', 'character'],
    ['https://app.example/cb\r\nX: y', 'character'],
    ['https://app.example\\@evil.example/cb', 'character'],
    ['https://app.example/{tenant}/cb', 'character'],
    ['https://app.example/"><script>', 'character'],
    ['https://bücher.example/cb', 'character'],
    ['https://аpp.example/cb', 'character'],
    ['https://app.example/bc\u202Ecod', 'character'],
    ['https://app.example/\u200Bcb', 'character'],
    ['https://app.example/\uD800', 'character'],
    ['https://*.app.example/cb', 'wildcard'],
    ['https://app.example/*', 'wildcard'],
    ['https://app.example/cb?x=*', 'wildcard'],
    ['https://app.example/cb#', 'fragment'],
    ['https://app.example/cb#part', 'fragment'],
    ['https://app.example/cb%00', 'escape'],
    ['https://app.example/cb?x=%0d%0a', 'escape'],
    ['https://app.example/100%', 'escape'],
    ['app.example/callback', 'not_a_url'],
    ['/callback', 'not_a_url'],
    ['//app.example/callback', 'not_a_url'],
    ['https://', 'not_a_url'],
    ['https://app.example:99999/', 'not_a_url'],
    ['javascript:alert(1)', 'scheme'],
    ['data:text/html,hello', 'scheme'],
    ['vbscript:x', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['blob:https://app.example/1', 'scheme'],
    ['ftp://app.example/cb', 'scheme'],
    ['com.example.app:/cb', 'scheme'],
    ['https://user@app.example/cb', 'userinfo'],
    ['https://user:word@app.example/cb', 'userinfo'],
    ['https://@app.example/cb', 'userinfo'],
    ['https://app.example/../cb', 'dot_segment'],
    ['https://app.example/a/./b', 'dot_segment'],
    ['https://app.example/a/..', 'dot_segment'],
    ['https://app.example/%2e%2E/cb', 'dot_segment'],
    ['https://app.example/cb?code=1', 'response_parameter'],
    ['https://app.example/cb?state', 'response_parameter'],
    ['https://app.example/cb?keep=1&iss=x', 'response_parameter'],
    ['https://app.example/cb?error=x', 'response_parameter'],
    ['https://app.example/cb?%63ode=1', 'response_parameter'],
    ['HTTPS://app.example/cb', 'spelling'],
    ['https://App.example/cb', 'spelling'],
    ['https://app.example:443/cb', 'spelling'],
    ['http://app.example:80/cb', 'spelling'],
    ['https:///app.example/cb', 'spelling'],
    ['https:app.example/cb', 'spelling'],
    ['http://127.1/cb', 'spelling'],
    ['http://2130706433/cb', 'spelling'],
    ['http://127.0.0.1:/cb', 'spelling'],
    ["https://app.example/it's?it's", 'spelling'],
  ];
  for (const [uri, code] of refused) {
    it(`refuses ${shown(uri)}: ${code}`, () => {
      const problem = redirectUriProblem(uri, web);
      expect(problem).to.have.property('code', code);
      expect(problem?.message).to.match(/^[A-Z]/);
    });
  }

  it('says how a name outside of ASCII is written', () => {
    expect(redirectUriProblem('https://bücher.example/cb', web)?.message).to.include(
      'https://xn--bcher-kva.example/cb',
    );
  });

  it('says how a browser spells the URI', () => {
    expect(redirectUriProblem('https://App.example:443/cb', web)?.message).to.include(
      'https://app.example/cb',
    );
  });

  it('says which part of a URI a browser would spell otherwise', () => {
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
  const accepted = [
    'com.example.app:/cb',
    'com.example.app://callback',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:51004/cb',
    'http://[::1]/cb',
    'http://localhost/cb',
    'https://app.example/cb',
  ];
  for (const uri of accepted) {
    it(`accepts ${uri}`, () => {
      expect(redirectUriProblem(uri, native)).to.equal(undefined);
    });
  }

  const refused: [uri: string, code: string][] = [
    ['myapp:/cb', 'private_scheme'],
    ['myapp://cb', 'private_scheme'],
    ['com.example.app:cb', 'private_scheme'],
    ['javascript:alert(1)', 'private_scheme'],
    ['http://10.0.0.1/cb', 'loopback'],
    ['http://app.example/cb', 'loopback'],
    ['http://127.0.0.2/cb', 'loopback'],
    ['http://localhost.app.example/cb', 'loopback'],
    ['https://127.0.0.1/cb', 'loopback'],
    ['https://localhost/cb', 'loopback'],
    ['http://user@127.0.0.1/cb', 'userinfo'],
    ['com.example.app://user@host/cb', 'userinfo'],
    ['com.example.app:/../cb', 'dot_segment'],
    ['com.example.app:/cb?code=1', 'response_parameter'],
    ['com.example.app:/cb#x', 'fragment'],
    ['COM.example.app:/cb', 'spelling'],
  ];
  for (const [uri, code] of refused) {
    it(`refuses ${uri}: ${code}`, () => {
      expect(redirectUriProblem(uri, native)).to.have.property('code', code);
    });
  }
});

describe('redirect URI warnings', () => {
  const warnings = (uri: string, options = web) =>
    redirectUriWarnings(uri, options).map(({ code }) => code);

  it('nothing is said about an https URI', () => {
    expect(warnings('https://app.example/cb?keep=1')).to.deep.equal([]);
  });

  it('http beyond this machine is warned about', () => {
    expect(warnings('http://app.example/cb')).to.deep.equal(['plain_http']);
    expect(warnings('http://192.168.1.10/cb')).to.deep.equal(['plain_http']);
    expect(warnings('http://app.localhost:3000/cb')).to.deep.equal([]);
  });

  it('localhost is warned about for native clients only (RFC 8252 §8.3)', () => {
    expect(warnings('http://localhost/cb', native)).to.deep.equal(['localhost_name']);
    expect(warnings('http://localhost/cb')).to.deep.equal([]);
  });

  it('a query that will arrive spelled differently is warned about', () => {
    expect(warnings('https://app.example/cb?x=a%20b')).to.deep.equal(['query_rewritten']);
  });
});

/** A name for the test that fits a line and has no invisible characters. */
function shown(uri: string): string {
  return uri.length > 100 ? `a URI of ${uri.length} characters` : JSON.stringify(uri);
}

import { expect } from 'chai';
import {
  checkClientName,
  checkRedirectUris,
  normalizeClientName,
  refuseInvalidClient,
} from '../../src/clients/client-rules.ts';
import { Refusal } from '../../src/refusal.ts';

const web = { native: false };
const uriNumber = (number: number) => `https://app.example/${number}`;

describe('list of redirect URIs', () => {
  it('one to twenty distinct URIs are accepted', () => {
    const twenty = Array.from({ length: 20 }, (_, number) => uriNumber(number));
    expect(checkRedirectUris(twenty, web)).to.deep.equal({ problems: [], warnings: [] });
    expect(checkRedirectUris([uriNumber(1)], web).problems).to.deep.equal([]);
  });

  it('an empty list is refused', () => {
    expect(checkRedirectUris([], web).problems).to.have.nested.property('[0].code', 'none');
  });

  it('more than twenty are refused', () => {
    const many = Array.from({ length: 21 }, (_, number) => uriNumber(number));
    expect(checkRedirectUris(many, web).problems).to.have.nested.property('[0].code', 'too_many');
  });

  it('each row has its own problem, and a repeated URI is refused, not merged', () => {
    const uris = [uriNumber(1), 'https://app.example/*', uriNumber(1), '', 'http://App.example/'];
    const found = checkRedirectUris(uris, web).problems.map(({ index, code }) => [index, code]);
    expect(found).to.deep.equal([
      [1, 'wildcard'],
      [2, 'duplicate'],
      [3, 'blank'],
      [4, 'spelling'],
    ]);
  });

  it('a URI that is another row once it is spelled as browsers send it is a duplicate', () => {
    const rows: readonly (readonly [readonly string[], readonly (readonly [number, string])[]])[] =
      [
        [['https://App.example/1', uriNumber(1)], [[0, 'duplicate']]],
        [[uriNumber(1), 'https://app.example:443/1'], [[1, 'duplicate']]],
        [
          ['https://App.example/1', 'https://APP.example/1'],
          [
            [0, 'spelling'],
            [1, 'duplicate'],
          ],
        ],
        [['https://App.example/1', uriNumber(2)], [[0, 'spelling']]],
      ];
    for (const [uris, expected] of rows) {
      const found = checkRedirectUris(uris, web).problems.map(({ index, code }) => [index, code]);
      expect(found, uris.join(' ')).to.deep.equal(expected);
    }
  });

  it('an origin and the same with its slash are one URI: the second is refused', () => {
    for (const uris of [
      ['https://app.example', 'https://app.example/'],
      ['https://app.example/', 'https://app.example'],
      ['https://app.example?a=1', 'https://app.example/?a=1'],
    ]) {
      const [found, ...others] = checkRedirectUris(uris, web).problems;
      expect(found, uris.join()).to.include({ code: 'duplicate', index: 1 });
      expect(found?.message).to.equal('Remove it: it is, as browsers send it, row 1 again.');
      expect(others).to.deep.equal([]);
    }
  });

  it('two URIs that differ only by the slash at the end are accepted with a warning', () => {
    const found = checkRedirectUris(['https://app.example/cb', 'https://app.example/cb/'], web);
    expect(found.problems).to.deep.equal([]);
    expect(found.warnings.map(({ index, code }) => [index, code])).to.deep.equal([
      [0, 'slash_twin'],
    ]);
  });
});

describe('client name', () => {
  const accepted = [
    'A',
    'Bücher & Söhne',
    '在庫アプリ',
    '<img src=x onerror=alert(1)>',
    'a'.repeat(100),
  ];
  for (const name of accepted) {
    it(`accepts ${name}`, () => {
      expect(checkClientName(name)).to.deep.equal([]);
    });
  }

  const refused: [name: string, code: string][] = [
    ['', 'name_missing'],
    [' \t\n ', 'name_missing'],
    ['a'.repeat(101), 'name_too_long'],
    ['a'.repeat(10_000), 'name_too_long'],
    ['App\u0000', 'name_character'],
    ['App\nname', 'name_character'],
    ['App\u202Eppa', 'name_character'],
    ['App\u2066x', 'name_character'],
    ['App\u200Bx', 'name_character'],
    ['App\u3164x', 'name_character'],
    ['App\uD800', 'name_character'],
  ];
  for (const [name, code] of refused) {
    it(`refuses ${JSON.stringify(name.slice(0, 20))}: ${code}`, () => {
      expect(checkClientName(name)).to.have.nested.property('[0].code', code);
    });
  }

  it('is kept without space around it and in one spelling', () => {
    expect(normalizeClientName('  Bu\u0308cher ')).to.equal('Bücher');
  });
});

describe('client draft', () => {
  const draft = {
    kind: 'confidential',
    name: 'Partner',
    redirectUris: ['https://app.example/cb'],
    isNative: false,
  } as const;
  const codesOf = (overrides: object): string[] => {
    try {
      refuseInvalidClient({ ...draft, ...overrides });
      return [];
    } catch (error) {
      return error instanceof Refusal ? error.problems.map(({ code }) => code) : [String(error)];
    }
  };

  it('a refusal names every problem', () => {
    expect(codesOf({})).to.deep.equal([]);
    expect(codesOf({ name: '', redirectUris: ['x', 'https://y.example/*'] })).to.deep.equal([
      'name_missing',
      'not_a_url',
      'wildcard',
    ]);
  });

  it('machine clients and resource servers have no redirect URIs', () => {
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

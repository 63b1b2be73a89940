import { expect } from 'chai';
import { isDifferent, redirectUriDifference } from '../../src/clients/redirect-uri-difference.ts';

/** Formats the sent URI with `[sent|registered]` where the two differ. */
function shown(sent: string, registered: readonly string[]): string | undefined {
  return redirectUriDifference(sent, registered)
    ?.map((part) => (isDifferent(part) ? `[${part.sent}|${part.registered}]` : part.sent))
    .join('');
}

describe('difference of redirect URIs', () => {
  const registered = ['https://app.example/cb'];
  const cases: Readonly<Record<string, string>> = {
    'https://app.example/cb/': 'https://app.example/cb[/|]',
    'http://app.example/cb': '[http|https]://app.example/cb',
    'https://app.example/Cb': 'https://app.example/[Cb|cb]',
    'https://app.example:8443/cb': 'https://app.example[:8443|]/cb',
    'https://www.app.example/cb': 'https://[www.app.example|app.example]/cb',
    'https://app.example/cb?a=…': 'https://app.example/cb[?a=…|]',
    'https://app.example/': 'https://app.example/[|cb]',
    'http://app.example/cb/?a=…': '[http|https]://app.example/cb[/?a=…|]',
    'http://other.example/cb/': '[http|https]://[other.example|app.example]/cb[/|]',
    nonsense: '[nonsense|https://app.example/cb]',
    '': '[|https://app.example/cb]',
  };

  for (const [sent, marked] of Object.entries(cases)) {
    it(`the parts of ${JSON.stringify(sent)} that differ from the registered URI are marked`, () => {
      expect(shown(sent, registered)).to.equal(marked);
    });
  }

  it('the sent redirect URI is compared with the most similar registered URI', () => {
    const several = ['https://other.example/cb', 'https://app.example/cb', 'https://app.example/x'];
    expect(shown('https://app.example/cb2', several)).to.match(/\[cb2\|cb\]$/);
    expect(shown('http://app.example/cb/', several)).to.match(/^\[http\|https\].*cb\[\/\|\]$/);
  });

  it('no difference is marked if the sent URI is registered, or if no URI is registered', () => {
    expect(shown('https://app.example/cb', [...registered, 'https://b.example/'])).to.equal(undefined);
    expect(shown('https://app.example/cb', [])).to.equal(undefined);
  });

  it('the marked parts, joined, always give the complete sent URI and the complete registered URI', () => {
    const hostile = ['/'.repeat(2_000), 'a/'.repeat(1_000), 'https://ä.example/😀', '//\uFFFD//'];
    for (const [sent, other] of hostile.flatMap((uri) =>
      [...hostile, ...registered].map((another) => [uri, another] as const),
    )) {
      if (sent === other) continue;
      const stretches = redirectUriDifference(sent, [other]) ?? [];
      expect(stretches.map((stretch) => stretch.sent).join('')).to.equal(sent);
      expect(stretches.map((stretch) => stretch.registered).join('')).to.equal(other);
    }
  });
});

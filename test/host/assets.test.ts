/** Stylesheet, script and SVG are sent compressed; everything that is made for a person never is. */
import { get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl, clientCredentials } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

/** The header of today's browsers, which name gzip first. */
const BROWSER = 'gzip, deflate, br, zstd';

describe('static text files are sent compressed, but pages and API answers are not', () => {
  const on = startSeeded();

  /** Returns the answer as it is on the wire. */
  const wire = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<{ status: number; headers: Headers; body: Buffer }>((resolve, reject) => {
      const asked = get(new URL(path, on.issuer), { method, headers }, async (answer) => {
        const all = Object.entries(answer.headersDistinct);
        const pairs = all.flatMap(([name, values = []]) => values.map((one) => [name, one]));
        const seen = new Headers(pairs as [string, string][]);
        resolve({ status: answer.statusCode ?? 0, headers: seen, body: await buffer(answer) });
      });
      asked.on('error', reject);
    });
  const accepting = (encodings: string) => ({ 'accept-encoding': encodings });

  async function files(): Promise<readonly string[]> {
    const { html } = await createPerson(on.issuer).get('/login');
    return [...html.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, url = '']) => url);
  }

  it('stylesheet, script and SVG are sent in Brotli or gzip to browsers that accept it, with their exact length', async () => {
    const urls = await files();
    expect(urls).to.have.length(3);
    for (const url of urls) {
      const plain = await wire(url);
      expect(plain.headers.get('content-encoding'), url).to.equal(null);
      const expectations = [
        [BROWSER, 'br', brotliDecompressSync],
        ['gzip', 'gzip', gunzipSync],
        ['br;q=0, gzip', 'gzip', gunzipSync],
      ] as const;
      for (const [accepted, encoding, decompress] of expectations) {
        const { headers, body } = await wire(url, accepting(accepted));
        expect(headers.get('content-encoding'), `${url} ${accepted}`).to.equal(encoding);
        expect(headers.get('content-length')).to.equal(String(body.length));
        expect(body.length).to.be.below(plain.body.length);
        expect(headers.get('content-type')).to.equal(plain.headers.get('content-type'));
        expect(decompress(body).equals(plain.body), `${url} ${accepted}`).to.equal(true);
        const head = await wire(url, accepting(accepted), 'HEAD');
        expect(head.headers.get('content-length')).to.equal(String(body.length));
        expect(head.headers.get('content-encoding')).to.equal(encoding);
        expect(head.body).to.have.length(0);
      }
      for (const refusing of ['identity', 'zstd', 'br;q=0, gzip;q=0', '']) {
        const { headers, body } = await wire(url, accepting(refusing));
        expect(headers.get('content-encoding'), refusing).to.equal(null);
        expect(body.equals(plain.body)).to.equal(true);
      }
    }
  });

  it('each encoding has an ETag of its own, and caches keep the encodings apart', async () => {
    for (const url of await files()) {
      const answers = await Promise.all(['identity', 'gzip', 'br'].map((one) => wire(url, accepting(one))));
      for (const { headers } of answers) expect(headers.get('vary')).to.equal('Accept-Encoding');
      const tags = answers.map(({ headers }) => headers.get('etag') ?? '');
      expect(new Set(tags).size, tags.join(' ')).to.equal(3);
      const [, gzip = '', br = ''] = tags;
      const known = { 'if-none-match': br, ...accepting('br') };
      const unchanged = await wire(url, known);
      expect(unchanged.status).to.equal(304);
      expect(unchanged.body).to.have.length(0);
      expect(unchanged.headers.get('vary')).to.equal('Accept-Encoding');
      expect(unchanged.headers.get('etag')).to.equal(br);
      expect((await wire(url, { ...known, 'if-none-match': gzip })).status).to.equal(200);
    }
  });

  it('the stylesheet with the brand colour is sent compressed, and one with another colour is sent uncompressed', async () => {
    const { brand } = on.service.settings;
    await on.service.apply({ ...on.service.settings, brand: { ...brand, colour: '#0B5CAD' } });
    const coloured = (await files()).find((url) => url.endsWith('?colour=0b5cad')) ?? '';
    const sent = await wire(coloured, accepting(BROWSER));
    expect(sent.headers.get('content-encoding')).to.equal('br');
    const { body: plain } = await wire(coloured);
    expect(brotliDecompressSync(sent.body).equals(plain)).to.equal(true);
    expect(plain.toString()).to.include('--brand: #0b5cad');
    const other = await wire(coloured.replace('0b5cad', '846a00'), accepting(BROWSER));
    expect(other.headers.get('content-encoding')).to.equal(null);
    expect(other.body.toString()).to.include('--brand: #846a00');
    await on.service.apply({ ...on.service.settings, brand });
  });

  it('icons that are compressed already are sent as they are', async () => {
    for (const path of ['/favicon.ico', '/apple-touch-icon.png']) {
      const { status, headers } = await wire(path, accepting(BROWSER));
      expect(status).to.equal(200);
      expect(headers.get('content-encoding'), path).to.equal(null);
      expect(headers.get('vary'), path).to.equal(null);
    }
  });

  it('no page and no answer to a program is compressed, because its length would leak secrets in it', async () => {
    const person = await signedIn(on.service, on.seeded.other);
    const { id } = on.clients.confidential;
    const pages = on.service
      .routes()
      .filter(({ method, path }) => method === 'GET' && !/^\/assets\/|\/(requests|changes)$/.test(path))
      .map(({ path }) => path.replace(/:\w+/g, path.includes('/organizations/') ? on.seeded.elsewhere.id : id));
    expect(pages).to.have.length.above(50);
    pages.push('/errors/invalid_grant', '/nothing-here', '/oauth/authorize?client_id=nope');
    for (const path of pages) {
      const { headers } = await person.get(path, accepting(BROWSER));
      expect(headers.get('content-encoding'), path).to.equal(null);
    }
    const form = await person.send('/profile/oauth-clients/new', {}, accepting(BROWSER));
    expect(form.headers.get('content-encoding')).to.equal(null);
    const url = authorizationUrl(on.issuer, on.clients.confidential);
    const consent = await person.follow(await person.get(url, accepting(BROWSER)));
    expect(consent.html).to.include('value="approve"');
    expect(consent.headers.get('content-encoding')).to.equal(null);
    const tokens = await clientCredentials(on.issuer, on.clients.machine);
    expect(tokens.headers.get('content-encoding')).to.equal(null);
  });
});

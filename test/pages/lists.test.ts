/** Lists with 200 entries: searched, sorted and paged, with as many queries as a list of one. */
import { expect } from 'chai';
import { expectSameQueries } from '../support/metrics.ts';
import type { Page } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { said, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PAGES = ['', '/oauth-clients', '/connections', '/api-keys', '/activity', '/organizations'];

describe('pages that list the clients, API keys, organizations and activity of a user', () => {
  const on = startSeeded();
  let many: SignedInPerson;
  let few: SignedInPerson;

  before(async () => {
    await fill(on.seeded.person.accountId, 'a', 200, 25);
    await fill(on.seeded.other.accountId, 'b', 1, 1);
    many = await signedIn(on.service, on.seeded.person);
    few = await signedIn(on.service, on.seeded.other);
  });

  /** Gives a user owned and connected clients, API keys, owned organizations and activity. */
  async function fill(id: string, mark: string, count: number, keys: number): Promise<void> {
    const names = `FROM generate_series(1, ${count}) i`;
    const client = `'gate_ci_' || '${mark}' || lpad(i::text, 21, '0')`;
    const statements = [
      `INSERT INTO clients (id, kind, name, owner_account_id, redirect_uris, native, created_at,
          updated_at, last_used_at)
        SELECT ${client}, 'confidential', 'Größe ' || i, '${id}', '{https://a.example/cb}', false,
          now() - i * interval '1 minute', now(), CASE i % 2 WHEN 0 THEN now() END ${names}`,
      `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
        SELECT '${mark}' || i, ${client}, 'h', 'x7Qa', now() ${names}`,
      `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name,
          consented_hosts)
        SELECT '${id}', ${client}, now(), now(), '', '{}' ${names}`,
      `INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at)
        SELECT 'key_${mark}' || lpad(i::text, 15, '0'), '${id}', 'Key ' || i, '${mark}' || i, 'x7Qa',
          now() FROM generate_series(1, ${keys}) i`,
      `INSERT INTO organizations (id, name, created_at)
        SELECT 'org_${mark}' || lpad(i::text, 15, '0'), 'Depot ' || i, now() ${names}`,
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        SELECT '${id}', 'org_${mark}' || lpad(i::text, 15, '0'), 'owner', now() ${names}`,
      `INSERT INTO activity (at, account_id, actor, action, details)
        SELECT now(), '${id}', 'person', 'connected', '{"client_name": "Größe"}' ${names}`,
    ];
    for (const statement of statements) await on.service.database.query(statement);
    on.service.access.forget(id);
  }

  const namesOn = ({ html }: Page): string[] =>
    [...(html.split('<main')[1] ?? '').matchAll(/<strong>(?:<a href="[^"]*">)?<bdi>([^<]*)<\/bdi>/g)].map(
      ([, name = '']) => name,
    );
  const nextOf = ({ html }: Page): string | undefined =>
    html.match(/rel="next" href="([^"]*)"/)?.[1]?.replaceAll('&amp;', '&');

  const previousOf = ({ html }: Page): string =>
    html.match(/rel="prev" href="([^"]*)"/)?.[1]?.replaceAll('&amp;', '&') ?? '';

  it('pages with 200 entries need no more queries than pages with one entry', async () => {
    for (const page of PAGES) {
      const path = `/profile${page}`;
      for (const person of [few, many]) expect((await person.get(path)).status, path).to.equal(200);
      await expectSameQueries(
        on.service,
        () => few.get(path),
        () => many.get(path),
      );
    }
  });

  it('the pages of a list show each of 200 entries once, even if one is deleted between two pages', async () => {
    for (const path of ['/profile/oauth-clients', '/profile/connections?order=newest']) {
      const seen: string[] = [];
      for (let next: string | undefined = path; next; ) {
        const page = await many.get(next);
        seen.push(...namesOn(page));
        next = nextOf(page);
      }
      expect(new Set(seen).size, path).to.equal(200);
      expect(seen.length, path).to.equal(200);
    }
    const sizes: number[] = [];
    for (let next: string | undefined = '/profile/activity'; next; ) {
      const page = await many.get(next);
      sizes.push(page.html.match(/class="log-what/g)?.length ?? 0);
      next = nextOf(page);
    }
    expect(sizes, 'the 200 entries of the log, and the sign-in').to.deep.equal([50, 50, 50, 50, 1]);
    const first = await many.get('/profile/api-keys?order=used');
    expect(nextOf(first)).to.equal(undefined);
    const clients = await many.get('/profile/oauth-clients');
    const [gone = ''] = namesOn(clients).slice(-1);
    await on.service.database.query('DELETE FROM clients WHERE name = $1', [gone]);
    const rest = await many.get(nextOf(clients) ?? '');
    expect(namesOn(rest)[0]).to.equal('Größe 26');
  });

  it('each page of a list shows its position and the total number, and links to the previous page', async () => {
    const first = await many.get('/profile/connections');
    expect(textOf(first.html)).to.include('1–25 of 199');
    expect(first.html).to.not.include('rel="prev"');
    const second = await many.get(nextOf(first) ?? '');
    expect(textOf(second.html)).to.include('26–50 of 199');
    const third = await many.get(nextOf(second) ?? '');
    expect(textOf(third.html)).to.include('51–75 of 199');
    expect(namesOn(await many.get(previousOf(third)))).to.deep.equal(namesOn(second));
    expect(namesOn(await many.get(previousOf(second)))).to.deep.equal(namesOn(first));
    expect(textOf((await many.get('/profile/connections?q=gr%C3%B6%C3%9Fe+19')).html)).to.not.include('–');
  });

  it('a search in 200 entries ignores case and accents, and a list can be filtered and sorted', async () => {
    const at = async (query: string): Promise<Page> => many.get(`/profile/oauth-clients?${query}`);
    for (const q of ['GROSSE', 'gro%C3%9Fe', 'gr%C3%B6sse']) {
      expect(namesOn(await at(`q=${q}+199`)), q).to.deep.equal(['Größe 199']);
    }
    expect(namesOn(await at('q=GR%C3%96%C3%9FE+19')).length).to.equal(12);
    expect(textOf((await at('only=unused')).html)).to.include('99 of 199');
    expect(namesOn(await at('order=newest'))[0]).to.equal('Größe 1');
    expect(textOf((await at('q=nobody')).html)).to.include('No matches.');
    expect(namesOn(await many.get('/profile/organizations?q=depot+200'))).to.deep.equal(['Depot 200']);
    const log = await many.get('/profile/activity?only=signing-in');
    expect(textOf(log.html))
      .to.include('Signed in')
      .and.not.match(/Connected Größe/);
    const found = await many.get('/profile/activity?q=gr%C3%B6%C3%9Fe');
    expect(textOf(found.html)).to.match(/Connected Größe/);
    expect(found.html.match(/<strong>Connected<\/strong>/g)).to.have.length(50);
    expect(nextOf(found)).to.match(/q=.*before=/);
  });

  it('disconnecting more than ten apps at once requires the user to type their number', async () => {
    const path = '/profile/connections/disconnect-all';
    const asked = await many.get(path);
    const count = (await on.service.connections.listOf(on.seeded.person.accountId)).length;
    expect(textOf(asked.html)).to.include(said('confirm.to-type', { what: String(count) }));
    const refused = await many.submit(asked, { confirm_name: '10' });
    expect(refused.status).to.equal(422);
    expect(textOf(refused.html)).to.include(said('confirm.not-typed'));
    expect(await on.service.connections.listOf(on.seeded.person.accountId)).to.have.length(count);
    expect((await few.get(path)).html).to.not.include('confirm_name');
    expect((await many.submit(asked, { confirm_name: ` ${count} ` })).status).to.equal(303);
    expect(await on.service.connections.listOf(on.seeded.person.accountId)).to.have.length(0);
  });

  it('lists on profile pages ignore invalid query parameters', async () => {
    for (const page of PAGES) {
      for (const query of [
        'q=%00',
        'order=x&only=y&after=%00&key=%ff',
        'q=a&q=b&after[]=1',
        `before=${'9'.repeat(30)}`,
      ]) {
        expect((await few.get(`/profile${page}?${query}`)).status, `${page} ${query}`).to.equal(200);
      }
    }
  });
});

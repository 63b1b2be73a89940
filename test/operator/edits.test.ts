import { userInfo } from 'node:os';
import { expect } from 'chai';
import { fileWith } from '../config/configuration.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { introspect, refresh } from '../support/oauth.ts';
import { isSignedIn } from '../support/person.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { takeRecords } from './operator-suite.ts';
import { expectWrongUsage, keysOf, operatorFor, refusalFrom, valueFrom } from './run-operator.ts';

type Row = Readonly<Record<string, unknown>>;
const idsOf = (rows: readonly Row[]): unknown[] => rows.map(({ id }) => id);

describe('operator commands change and delete records of a running service', () => {
  const on = startSeeded();
  const run = (words: string | readonly string[]) => operatorFor(on.service)(words);
  const value = (words: string | readonly string[]) => valueFrom(run, words);
  const refusal = (words: string) => refusalFrom(run, words);
  const latest = async (action: string) => (await value(`audit --action ${action} --limit 1`))[0];
  const answered = async (token: string) => (await introspect(on.issuer, on.clients.resourceServer, token)).body;
  const reached = async (token: string) => JSON.stringify((await answered(token)).organizations);

  /** The service is notified of an end a moment after the command. */
  const expectEnded = (token: string) =>
    eventually(async () => expect(await on.partner.isActive(token)).to.equal(false));

  // The first test, because it counts what lists contain.
  it('each list command prints pages, and its --match searches every column', async () => {
    for (const client of [on.clients.confidential, on.clients.otherConfidential]) {
      await on.partner.tokens(client);
    }
    const { accountId, email } = on.seeded.person;
    const { organization, warehouse } = on.seeded;
    await value(`accounts add --email ÄRGER@example.test --name Ärger --invite`);
    await value(`clients suspend ${on.clients.public.id}`);
    await value(`organizations update ${organization.id} --external-id O-1`);
    await value(`warehouses update ${warehouse.id} --external-id W-1`);
    const { id: bergen } = await value(`warehouses add --organization ${on.seeded.elsewhere.id} --name Bergen`);
    const today = new Date().toISOString().slice(0, 8);
    const lists: [words: string, found: readonly string[], from: number][] = [
      ['accounts list', [accountId, 'GRACE@', 'grace PERS', 'Active', 'ärger', 'no password'], 3],
      ['clients list', ['gate_ci_', 'MACHINE', 'night sync', 'Oscar', '(operator)', 'suspended'], 6],
      ['organizations list', [organization.id, 'NORTHERN', 'o-1'], 2],
      ['warehouses list', [bergen, 'rotter', 'ELSEWHERE', 'w-1'], 2],
      [`connections list --account ${email}`, [`${accountId}/`, 'GRACE', 'route', today, 'never'], 2],
      [`memberships list --organization ${organization.id}`, [accountId, 'night sync (m', 'member'], 2],
      [`memberships list --warehouse ${warehouse.id}`, ['grace', 'READ,write', 'active'], 1],
    ];
    for (const [list, found, size] of lists) {
      const all = idsOf(await value(list));
      expect(all, list).to.have.length(size);
      const pages: unknown[] = [];
      for (const after of ['', ...all.map((id) => ` --after ${id}`)]) {
        pages.push(...idsOf(await value(`${list} --limit 1${after}`)));
      }
      expect(pages, list).to.deep.equal(all);
      for (const word of found) {
        const { length } = await value([...list.split(' '), '--match', word]);
        expect(length, `${list} --match ${word}`).to.be.within(1, size);
      }
      expect(await value(`${list} --match nothing-like-it`), list).to.deep.equal([]);
    }
    expect(idsOf(await value('clients list --suspended'))).to.deep.equal([on.clients.public.id]);
    const owned = await value(`clients list --owner ${on.seeded.other.email} --kind confidential`);
    expect(idsOf(owned)).to.deep.equal([on.clients.confidential.id]);
    const of = `memberships list --organization ${organization.id}`;
    expect(await value(`${of} --role owner`)).to.deep.equal([]);
    // People read of a page that it is one, and of nothing why.
    const [first] = await value('clients list');
    expect((await run('clients list --limit 1')).output).to.include(`There are 5 more: add --after ${first.id}`);
    expect((await run('clients list --match nothing-like-it')).output).to.include('Nothing matches these options.');
    expect((await run('audit --limit 1')).output).to.match(/older entries: add --before \d+/);
  });

  it('an operator can end one connection, and no other of the same user or client', async () => {
    const { person, other } = on.seeded;
    const { confidential, otherConfidential } = on.clients;
    const oscar = partnerTokens(on.issuer, { ...on.seeded, person: other });
    const mine = await on.partner.tokens(confidential);
    const also = await on.partner.tokens(otherConfidential);
    const theirs = await oscar.tokens(confidential);
    const words = `connections end ${person.accountId}/${confidential.id}`;
    await takeRecords(on.service.database);
    expect((await refusal(words)).code).to.equal('confirmation_needed');
    expect(await on.partner.isActive(mine.accessToken)).to.equal(true);
    expect(await value(`${words} --yes`)).to.include({ email: person.email, ended: true });
    await expectEnded(mine.accessToken);
    expect((await refresh(on.issuer, confidential, mine.refreshToken)).status).to.equal(400);
    for (const { accessToken } of [also, theirs]) {
      expect(await on.partner.isActive(accessToken)).to.equal(true);
    }
    expect((await refusal(`${words} --yes`)).code).to.equal('connection_unknown');
    expect((await takeRecords(on.service.database)).map(({ action }) => action)).to.deep.equal(['disconnected']);

    const [left] = await value(`connections list --account ${person.email}`);
    expect(await value(`connections end ${left.id} --yes`)).to.include({ id: left.id });
    await expectEnded(also.accessToken);
    expect(await on.partner.isActive(theirs.accessToken)).to.equal(true);
    await expectWrongUsage(run, ['connections end', 'connections end nonsense', `connections end ${left.id}/more`]);
  });

  it('an operator can list API keys and revoke one by its id, and never sees the key itself', async () => {
    const { person, other } = on.seeded;
    const [leaked, kept, theirs] = [
      await apiKeyOf(on.service, person),
      await apiKeyOf(on.service, person, 'Import'),
      await apiKeyOf(on.service, other, 'Theirs'),
    ];
    const answer = await run('api-keys list --json');
    for (const { value } of [leaked, kept, theirs]) expect(answer.output).not.to.contain(value);
    expect(JSON.parse(answer.output)).to.have.length(3);
    const listed = await value(`api-keys list --account ${person.email} --match export`);
    expect(listed).to.have.length(1);
    expect(listed[0]).to.deep.include({
      id: leaked.id,
      email: person.email,
      name: 'Export',
      expired: false,
      last_four: leaked.value.slice(-4),
      last_used_at: null,
    });

    const words = `api-keys revoke ${leaked.id}`;
    expect((await refusal(words)).code).to.equal('confirmation_needed');
    expect(await on.partner.isActive(leaked.value)).to.equal(true);
    expect(await value(`${words} --yes`)).to.include({ revoked: true, email: person.email });
    await expectEnded(leaked.value);
    for (const { value } of [kept, theirs]) expect(await on.partner.isActive(value)).to.equal(true);
    for (const id of [leaked.id, 'key_0000000000000000', kept.value]) {
      expect((await refusal(`api-keys revoke ${id} --yes`)).code).to.equal('api_key_unknown');
    }
    const { output, errors } = await run(`api-keys revoke ${kept.value} --yes`);
    expect(output + errors, 'the value of a key, given instead of its id').not.to.contain(kept.value);
    for (const { email } of [other, person]) await value(`revoke --account ${email} --yes`);
    await eventually(async () => expect(await isSignedIn(on.partner.browser)).to.equal(false));
  });

  it('deleting a warehouse or organization lists what is lost, and ends all access to it', async () => {
    const { organization, warehouse, elsewhere } = on.seeded;
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    await value(['warehouses', 'update', warehouse.id, '--name', 'Europoort']);
    await eventually(async () => expect(await reached(accessToken)).to.contain('Europoort'));
    const adopted = await value(`organizations update ${organization.id} --external-id 17`);
    expect(adopted).to.include({ name: organization.name, external_id: '17' });
    const taken = await refusal(`organizations update ${elsewhere.id} --external-id 17`);
    expect(taken.code).to.equal('external_id_taken');

    const members = await value(`memberships list --warehouse ${warehouse.id}`);
    expect(members).to.deep.equal([
      {
        id: on.seeded.person.accountId,
        kind: 'person',
        name: on.seeded.person.name,
        email: on.seeded.person.email,
        role: 'member',
        rights: ['read', 'write'],
        suspended: false,
      },
    ]);
    const all = await value(`memberships list --organization ${organization.id}`);
    expect(all.map(({ kind }: Row) => kind)).to.deep.equal(['person', 'machine']);
    expect(await value(`memberships list --organization ${organization.id} --role owner`)).to.be.empty;

    for (const [line, lost] of [
      [`warehouses delete ${warehouse.id}`, '1 people and 0 machine'],
      [`organizations delete ${organization.id}`, '1 people and 1 machine'],
    ] as const) {
      const asked = await refusal(line);
      expect(asked.code).to.equal('confirmation_needed');
      expect(asked.message).to.contain(lost);
      await value([...line.split(' '), '--yes', '--reason', 'moved out']);
      const place = line.includes(warehouse.id) ? 'Europoort' : organization.name;
      await eventually(async () => expect(await reached(accessToken)).not.to.contain(place));
    }
    const record = await latest('organization_removed');
    expect(record).to.include({ operator: userInfo().username, reason: 'moved out' });
    expect(record.details).to.deep.equal({
      organization_id: organization.id,
      organization_name: organization.name,
      people: 1,
      machines: 1,
    });
    expect((await refusal('warehouses delete wh_nope --yes')).code).to.equal('warehouse_unknown');
  });

  it("commands change an account's name and address, end its sessions, and delete all of it except its audit id", async () => {
    const { person } = on.seeded;
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const key = await apiKeyOf(on.service, person, 'Grace’s export');
    const [connection] = await value(`connections list --account ${person.email}`);
    expect(connection).to.include({ client_id: on.clients.confidential.id, email: person.email });
    expect(await value(`connections list --client ${on.clients.confidential.id}`)).to.have.length(1);

    const elsewhere = await signedIn(on, person);
    const sessions = () => value(`sessions list --account ${person.email}`);
    const [last, first] = await sessions();
    expect(last.address).to.match(/127\.0\.0\.1$|^::1$/);
    expect(Date.parse(last.signed_in_at)).to.be.at.least(Date.parse(first.signed_in_at));
    expect(Date.parse(last.ends_at)).to.be.above(Date.parse(last.signed_in_at));
    const shorter = { ...keysOf(on.service), GATEHOUSE_CONFIG: fileWith('sessions: { idle: 1m, absolute: 1m }') };
    const [seen] = await valueFrom(operatorFor(on.service, shorter), `sessions list --account ${person.email}`);
    expect(Date.parse(seen.ends_at) - Date.parse(seen.signed_in_at)).to.equal(60_000);
    await elsewhere.submit(await elsewhere.get('/logout'), {});
    const [stays, ...others] = idsOf(await sessions());
    expect(others, 'one session was signed out').to.deep.equal([]);
    expect([first.id, last.id]).to.include(stays);
    const unasked = await refusal(`sessions end --account ${person.email}`);
    expect(unasked).to.include({
      code: 'confirmation_needed',
      message: `Ends every browser session of ${person.email}. This cannot be undone.`,
    });
    expect(idsOf(await sessions())).to.deep.equal([stays]);
    await value(`sessions end --account ${person.email} --yes`);
    await eventually(async () => expect(await isSignedIn(on.partner.browser)).to.equal(false));
    expect(await sessions()).to.be.empty;
    expect(await on.partner.isActive(accessToken), 'tokens stay active').to.equal(true);

    await value(['accounts', 'update', person.email, '--name', 'Grace King']);
    const { invite_link: link } = await value(`accounts invite ${person.email}`);
    await value(`accounts update ${person.email} --new-email King@Example.test`);
    const { pathname, search } = new URL(link);
    expect((await on.partner.browser.get(pathname + search)).status).to.equal(410);
    await eventually(async () => {
      const { username } = await answered(accessToken);
      expect(username).to.equal('King@Example.test');
    });
    const taken = await refusal(`accounts update king@example.test --new-email oscar@example.test`);
    expect(taken.code).to.equal('email_taken');

    const [{ content }] = await value('show king@example.test');
    expect(content).to.include({ name: 'Grace King', connections: 1, api_keys: 1 });
    const owner = await refusal(`accounts delete ${on.seeded.other.email} --yes`);
    expect(owner.code).to.equal('account_owns_clients');
    expect((await refusal('accounts delete king@example.test')).code).to.equal('confirmation_needed');
    await value('accounts delete king@example.test --yes');
    for (const token of [accessToken, key.value]) {
      await eventually(async () => expect(await on.partner.isActive(token)).to.equal(false));
    }
    const left = await on.service.database.query(
      'SELECT details::text, address, browser FROM activity WHERE account_id = $1',
      [person.accountId],
    );
    expect(left).not.to.be.empty;
    expect(JSON.stringify(left)).not.to.match(/grace|king|192\.0|the tests/i);
    expect(await latest('account_deleted')).to.include({
      account_id: person.accountId,
      email: null,
    });
    const [erased] = await value(`audit --account ${person.accountId} --limit 1`);
    expect(erased.action).to.equal('account_deleted');
  });

  it('`clients update` renames clients of every kind, and replaces all their redirect URIs', async () => {
    const uri = 'https://other.example/callback';
    for (const client of [on.clients.public, on.clients.machine, on.clients.resourceServer]) {
      const changed = await value(['clients', 'update', client.id, '--name', 'Anew']);
      expect(changed).to.include({ client_id: client.id, name: 'Anew' });
    }
    const moved = await value(`clients update ${on.clients.public.id} --redirect-uri ${uri}`);
    expect(moved).to.deep.include({ name: 'Anew', redirect_uris: [uri] });
    const refused = await refusal(`clients update ${on.clients.machine.id} --redirect-uri ${uri}`);
    expect(refused.code).to.equal('client_invalid');
    const both = `clients update ${on.clients.public.id} --name Never --always-ask`;
    expect(await refusal(both)).to.include({ code: 'always_ask_unused' });
    expect(await on.service.clients.find(on.clients.public.id)).to.include({ name: 'Anew' });
    expect((await latest('client_changed')).details.redirect_uris).to.deep.equal([uri]);
  });
});

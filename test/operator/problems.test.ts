/** Problems of clients and users as operators see them: recent problems, and blocked clients. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl, exchangeCode, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { operatorFor, type RunOperator, refusalFrom, valueFrom } from './run-operator.ts';

onPostgresAndRedis('operator problems and blocks', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  const value = (words: string) => valueFrom(run, words);

  it('`problems` lists recent problems of clients, with the exact cause, and of users: grouped and without secrets', async () => {
    const { confidential, otherConfidential } = on.clients;
    const { person } = on.seeded;
    const code = await on.partner.code(confidential);
    const wrong = { ...confidential, secret: withChecksum(`gate_cs_${'x'.repeat(43)}`) };
    for (const _ of [1, 2]) await exchangeCode(on.issuer, wrong, code);
    await refresh(on.issuer, otherConfidential, 'gate_rt_nonsense');
    const foreign = { redirect_uri: 'https://evil.example/callback?token=s3cret' };
    await createPerson(on.issuer).get(authorizationUrl(on.issuer, confidential, foreign));
    const stranger = createPerson(on.issuer);
    await stranger.signIn({ ...person, password: 'not the password' });
    // Wait for the background writes of the request's problems.
    await on.service.clientRequests.groups(confidential.id);

    const answer = await run('problems list --json');
    const all = JSON.parse(answer.output);
    for (const secret of [code, wrong.secret, 's3cret', person.password]) {
      expect(answer.output).not.to.contain(secret);
    }
    const [last] = all;
    expect(last).to.deep.include({ email: person.email, what: 'Wrong password', count: 1 });
    const [secrets] = all.filter(({ count }: { count: number }) => count === 2);
    expect(secrets).to.deep.include({
      client_id: confidential.id,
      client_name: 'Route Planner',
      step: 'token',
      error: 'invalid_client',
      auth_method: 'body',
    });
    expect(secrets.request_id).to.match(/^req_/);
    expect(all.map(({ what }: { what: string }) => what)).to.include.members([
      'authorize request refused: invalid_redirect_uri',
      'token request refused: invalid_grant',
    ]);

    const ofOne = await value(`problems list --client ${otherConfidential.id}`);
    expect(ofOne).to.have.length(1);
    expect(ofOne[0].client_id).to.equal(otherConfidential.id);
    const ofPerson = await value(`problems list --account ${person.email}`);
    expect(ofPerson).to.deep.equal([last]);
    expect(await value(`problems list --account ${on.seeded.other.email}`)).to.deep.equal([]);
    expect(await value('problems list --limit 1')).to.deep.equal([last]);
    const { output } = await run(`problems list --client ${confidential.id}`);
    expect(output).to.contain('Route Planner').and.contain(secrets.request_id);
  });

  describe('client blocks', () => {
    let owner: SignedInPerson;
    const path = (act: 'end' | 'let-in'): string =>
      `/profile/organizations/${on.seeded.organization.id}/clients/${on.clients.confidential.id}/${act}`;

    before(async () => {
      const olga = await addPerson(on.service, 'Olga Owner', 'olga@example.test');
      const { accountId } = olga;
      await on.service.memberships.setRole({ accountId }, on.seeded.organization.id, 'owner');
      on.service.access.forget(accountId);
      owner = await signedIn(on.service, olga);
      await owner.authorize(authorizationUrl(on.issuer, on.clients.confidential), olga);
    });

    it('client blocks are listed by organization and client, with the user who blocked, until unblocked', async () => {
      const { confidential, otherConfidential } = on.clients;
      const { organization, elsewhere } = on.seeded;
      expect(await value('blocks list')).to.deep.equal([]);
      await owner.fillIn(path('end'));
      const [block, ...others] = await value('blocks list');
      expect(others).to.deep.equal([]);
      expect(block).to.deep.include({
        organization_id: organization.id,
        organization_name: organization.name,
        client_id: confidential.id,
        client_name: 'Route Planner',
        blocked_by: 'olga@example.test',
        follows_another: false,
      });
      expect(Date.parse(block.blocked_at)).to.be.closeTo(Date.now(), 60_000);
      for (const [filter, count] of [
        [`--organization ${organization.id}`, 1],
        [`--organization ${elsewhere.id}`, 0],
        [`--client ${confidential.id}`, 1],
        [`--client ${otherConfidential.id}`, 0],
        ['--match olga@', 1],
      ] as const) {
        expect(await value(`blocks list ${filter}`), filter).to.have.length(count);
      }
      const unknown = await refusalFrom(run, 'blocks list --organization org_nope');
      expect(unknown.code).to.equal('organization_unknown');
      await owner.fillIn(path('let-in'));
      expect(await value('blocks list')).to.deep.equal([]);
    });

    it("a block outlives a deleted client: the owner's next client with the same redirect host is blocked", async () => {
      await owner.fillIn(path('end'));
      await value(`clients delete ${on.clients.confidential.id} --yes`);
      const [block] = await value('blocks list');
      expect(block).to.deep.include({ client_name: null, blocked_at: null });
      const { output } = await run('blocks list');
      expect(output).to.contain('(deleted)').and.contain('next client');
    });
  });
});

/** Ends one connection or API key by an id that is not secret, and keeps all others. */
import { expect } from 'chai';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { refresh } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { takeRecords } from './operator-suite.ts';
import { expectWrongUsage, operatorFor, type RunOperator, refusalFrom, valueFrom, type Words } from './run-operator.ts';

const FROM = { address: '192.0.2.1', browser: '' };

onPostgresAndRedis('operator, ending one connection or API key', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  const value = (words: Words) => valueFrom(run, words);
  const refused = async (words: Words): Promise<string> => (await refusalFrom(run, words)).code;
  const isActive = (token: string) => on.partner.isActive(token);
  /** The service is notified of an end a moment after the command. */
  const expectEnded = (token: string) => eventually(async () => expect(await isActive(token)).to.equal(false));

  it('an operator can end one connection, and no other of the same user or client', async () => {
    const { person, other } = on.seeded;
    const { confidential, otherConfidential } = on.clients;
    const oscar = partnerTokens(on.issuer, { ...on.seeded, person: other });
    const mine = await on.partner.tokens(confidential);
    const also = await on.partner.tokens(otherConfidential);
    const theirs = await oscar.tokens(confidential);
    const words = `connections end ${person.accountId}/${confidential.id}`;
    await takeRecords(on.service.database);
    expect(await refused(words)).to.equal('confirmation_needed');
    expect(await isActive(mine.accessToken)).to.equal(true);
    expect(await value(`${words} --yes`)).to.include({ email: person.email, ended: true });
    await expectEnded(mine.accessToken);
    expect((await refresh(on.issuer, confidential, mine.refreshToken)).status).to.equal(400);
    for (const { accessToken } of [also, theirs]) {
      expect(await isActive(accessToken)).to.equal(true);
    }
    expect(await refused(`${words} --yes`)).to.equal('connection_unknown');
    expect((await takeRecords(on.service.database)).map(({ action }) => action)).to.deep.equal(['disconnected']);

    const [left] = await value(`connections list --account ${person.email}`);
    expect(await value(`connections end ${left.id} --yes`)).to.include({ id: left.id });
    await expectEnded(also.accessToken);
    expect(await isActive(theirs.accessToken)).to.equal(true);
    await expectWrongUsage(run, ['connections end', 'connections end nonsense', `connections end ${left.id}/more`]);
  });

  it('an operator can list API keys and revoke one by its id, and never sees the key itself', async () => {
    const { person, other } = on.seeded;
    const add = (accountId: string, name: string) =>
      on.service.apiKeys.add({ accountId, name, expiresInDays: 30 }, FROM);
    const [leaked, kept, theirs] = [
      await add(person.accountId, 'Export'),
      await add(person.accountId, 'Import'),
      await add(other.accountId, 'Theirs'),
    ];
    const answer = await run('api-keys list --json');
    for (const { value } of [leaked, kept, theirs]) expect(answer.output).not.to.contain(value);
    expect(JSON.parse(answer.output)).to.have.length(3);
    const listed = await value(`api-keys list --account ${person.email} --match export`);
    expect(listed).to.have.length(1);
    expect(listed[0]).to.deep.include({
      id: leaked.key.id,
      email: person.email,
      name: 'Export',
      expired: false,
      last_four: leaked.value.slice(-4),
      last_used_at: null,
    });

    const words = `api-keys revoke ${leaked.key.id}`;
    expect(await refused(words)).to.equal('confirmation_needed');
    expect(await isActive(leaked.value)).to.equal(true);
    expect(await value(`${words} --yes`)).to.include({ revoked: true, email: person.email });
    await expectEnded(leaked.value);
    for (const { value } of [kept, theirs]) expect(await isActive(value)).to.equal(true);
    for (const id of [leaked.key.id, 'key_0000000000000000', kept.value]) {
      expect(await refused(`api-keys revoke ${id} --yes`)).to.equal('api_key_unknown');
    }
    const { output, errors } = await run(`api-keys revoke ${kept.value} --yes`);
    expect(output + errors, 'the value of a key, given instead of its id').not.to.contain(kept.value);
  });
});

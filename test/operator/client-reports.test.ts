/** `clients reports`: lists the reports of users about clients for the operator. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { forEachDeployment } from '../support/service.ts';
import { operatorFor, type RunOperator, refusalFrom, valueFrom } from './run-operator.ts';

forEachDeployment('operator clients reports', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  const value = (words: string) => valueFrom(run, words);

  it('`clients reports` lists the reports about all clients or one, the latest first, and changes nothing', async () => {
    expect(await value('clients reports')).to.deep.equal([]);
    expect((await run('clients reports')).output).to.include('Nothing was reported');
    const { confidential, otherConfidential } = on.clients;
    const reporter = await addPerson(on.service, 'Rita', 'rita@example.test');
    const person = await signedIn(on.service, reporter);
    const report = (id: string, fields: Readonly<Record<string, string>>) =>
      person.send(`/profile/connections/${id}/report`, fields);
    const sentence = `<b>It</b> moves\u001b[31m stock`;
    await report(confidential.id, { reason: 'misuse', sentence });
    await report(otherConfidential.id, { reason: 'other' });

    const [latest, first, ...others] = await value('clients reports');
    expect(others).to.deep.equal([]);
    expect(latest).to.deep.include({ client_id: otherConfidential.id, owner_name: null });
    expect(first).to.deep.include({
      ...{ id: `${confidential.id}/${reporter.accountId}`, client_name: 'Route Planner' },
      ...{ owner_name: 'Oscar Other', reason: 'misuse', email: 'rita@example.test' },
      sentence: '<b>It</b> moves\uFFFD[31m stock',
    });
    expect(await value(`clients reports --client ${confidential.id}`)).to.deep.equal([first]);
    expect(await value('clients reports --match misuse')).to.deep.equal([first]);
    expect(await value(`clients reports --after ${latest.id}`)).to.deep.equal([first]);
    const { output, errors } = await run('clients reports');
    expect(output).to.include('Route Planner').and.include('rita@example.test');
    expect(output).to.not.include('\u001b');
    expect(errors).to.equal('');
    const unknown = 'clients reports --client gate_ci_0000000000000000000000';
    expect((await refusalFrom(run, unknown)).code).to.equal('client_unknown');
  });

  it('`clients remove-report` removes one report after a confirmation, and is in the log of its sender', async () => {
    const [{ id }, other] = await value('clients reports');
    const { accountId } = on.seeded.person;
    expect((await refusalFrom(run, `clients remove-report ${id}`)).code).to.equal(
      'confirmation_needed',
    );
    expect(await value(`clients remove-report ${id} --yes`)).to.deep.equal({ id, removed: true });
    expect(await value('clients reports')).to.deep.equal([other]);
    const [record] = await value(`audit --account ${other.account_id} --limit 1`);
    expect(record).to.deep.include({ action: 'account_changed', actor: 'operator' });
    expect(record.details.changed).to.equal('removed report about Stock Reports');
    for (const unknown of [id, 'x', '/', `${other.client_id}/${accountId}`, other.client_id]) {
      const refusal = await refusalFrom(run, `clients remove-report ${unknown} --yes`);
      expect(refusal.code, unknown).to.equal('report_unknown');
    }
  });
});

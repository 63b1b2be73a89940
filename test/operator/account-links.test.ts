/** What operators do about accounts elsewhere: import the links, look at them, take them away, try the providers. */
import { expect } from 'chai';
import { fileWith } from '../config/configuration.ts';
import { freePort } from '../support/programs.ts';
import { startUpstream } from '../support/upstream.ts';
import { besideDatabase } from './beside-database.ts';
import { examine } from './doctor-findings.ts';
import { fileOf, type Line, line } from './import-file.ts';
import { operatorWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const ISSUER = 'https://id.example.com/';
const identity = (subject: string, issuer = ISSUER): Line => ({ identity: { issuer, subject } });

describe('links with accounts elsewhere', () => {
  const { run, value, refusal, parts, records } = besideDatabase();
  const imported = (...lines: Line[]) => value(`import ${fileOf(...lines)} --yes`);
  const problems = async (...lines: Line[]): Promise<string> =>
    (await refusalFrom(run, `import ${fileOf(...lines)}`)).problems
      .map(({ message }: { message: string }) => message)
      .join('\n');
  const linksOf = async (account: string) =>
    (await value(`accounts links ${account}`)).map(({ subject }: { subject: string }) => subject);

  it('come with an import: of new people and of those that are there, and only once', async () => {
    await imported(line.account('A1', identity('ada')), line.account('A2'));
    await records();
    const { changes } = await imported(
      line.account('A1', identity('ada')),
      line.account('A2', identity('bob')),
    );
    expect(changes).to.have.lengthOf(1);
    expect(changes[0].identity).to.deep.equal({ before: null, after: `bob at ${ISSUER}` });
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada']);
    expect(await linksOf('a2@example.test')).to.deep.equal(['bob']);
    const [record] = await records();
    expect(record?.action).to.equal('identity_linked');
    expect(record?.details).to.include({ subject: 'bob', issuer: ISSUER, by: 'import' });
    await records();
    // A line without it leaves it.
    expect((await imported(line.account('A1'), line.account('A2'))).changes).to.deep.equal([]);
  });

  it('are moved by no import, neither to another account nor to another subject', async () => {
    expect(await problems(line.account('A3', identity('ada')))).to.include('is linked with it');
    expect(await problems(line.account('A1', identity('other')))).to.include(
      'is linked with the subject "ada"',
    );
    expect(
      await problems(line.account('A4', identity('x')), line.account('A5', identity('x'))),
    ).to.include('identity: line 1 has the same one');
    expect(await problems(line.account('A4', identity('')))).to.include('printable ASCII');
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada']);
  });

  it('are taken away by hand, which is asked first and recorded', async () => {
    const unlink = `accounts unlink a1@example.test --provider ${ISSUER}`;
    expect((await refusal(unlink)).code).to.equal('confirmation_needed');
    expect(await value(`${unlink} --yes`)).to.include({ subject: 'ada', unlinked: true });
    expect((await records()).map(({ action }) => action)).to.deep.equal(['identity_unlinked']);
    expect((await refusal(`${unlink} --yes`)).code).to.equal('link_unknown');
    expect(await linksOf('a1@example.test')).to.deep.equal([]);
    await imported(line.account('A1', identity('ada again')));
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada again']);
  });

  it('are told by the id of the provider where the settings know it; without passwords an invitation signs in', async () => {
    const config = fileWith(`
sign_in:
  passwords: false
  providers: [{ id: platform, label: Platform, issuer: "${ISSUER}", client_id: gatehouse }]
`);
    const configured = operatorWith({ ...variablesOf(parts().database), GATEHOUSE_CONFIG: config });
    const [link] = await valueFrom(configured, 'accounts links a2@example.test');
    expect(link).to.include({ provider: 'platform', subject: 'bob', last_used_at: null });
    const unlink = 'accounts unlink a2@example.test --provider platform --yes';
    expect(await valueFrom(configured, unlink)).to.include({ issuer: ISSUER });
    const invited = await configured('accounts invite a2@example.test');
    expect(invited.output).to.include('Link to sign in, good once').and.include('/password?token=');
  });
});

describe('the doctor', () => {
  it('asks each provider for what it says of itself, and names what is wrong', async () => {
    const upstream = await startUpstream('http://localhost:3000');
    const entry = (id: string, issuer: string) =>
      `{ id: ${id}, label: ${id}, client_id: gatehouse, issuer: "${issuer}" }`;
    const GATEHOUSE_CONFIG = fileWith(
      `sign_in: { providers: [${entry('up', upstream.issuer)}, ${entry('slash', `${upstream.issuer}/`)}, ${entry('away', `http://127.0.0.1:${await freePort()}`)}] }`,
    );
    const GATEHOUSE_DATA_DIR = '/nonexistent/data';
    const { output } = await examine({ GATEHOUSE_CONFIG, GATEHOUSE_DATA_DIR });
    const { findings } = JSON.parse(output);
    const told = findings
      .filter(({ check }: { check: string }) => check === 'sign_in_providers')
      .map(({ status, message }: { status: string; message: string }) => `${status}: ${message}`);
    expect(told).to.have.lengthOf(3);
    expect(told[0])
      .to.match(/^ok: up answers/)
      .and.include('/login/up/callback');
    expect(told[1]).to.match(/^problem: nobody can sign in with slash/);
    expect(told[2])
      .to.match(/^problem: nobody can sign in with away/)
      .and.include('ECONNREFUSED');
  });
});

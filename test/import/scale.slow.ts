/** An import of many people needs little memory, however many they are. */
import { expect } from 'chai';
import { operatorProgramWith, valueFrom, variablesOf } from '../operator/run-operator.ts';
import { onPostgres } from '../support/databases.ts';
import { fileOf, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

const ORGANIZATIONS = 100;
const ROLES = ['member', 'viewer', 'admin'];

/**
 * Each account in five organizations, each tenth with rights in a warehouse; lines that refer to
 * others come first.
 */
function peopleOf(accounts: number): string {
  const all = Array.from({ length: accounts }, (_, at) => at);
  const places = Array.from({ length: ORGANIZATIONS }, (_, at) => at);
  const memberships = all.flatMap((at) =>
    [0, 1, 2, 3, 4].map((hop) => membership(`A${at}`, `O${(at + hop * 17) % ORGANIZATIONS}`, ROLES[(at + hop) % 3])),
  );
  const tenth = all.filter((at) => at % 10 === 0);
  return fileOf(
    ...tenth.map((at) => rights(`A${at}`, `W${at % ORGANIZATIONS}`, 'read')),
    ...memberships,
    ...all.map((at) => account(`A${at}`)),
    ...places.map((at) => warehouse(`W${at}`, `O${at}`)),
    ...places.map((at) => organization(`O${at}`)),
  );
}

onPostgres('a large import', (open) => {
  it('a large import succeeds with bounded memory', async function () {
    this.timeout(180_000);
    const accounts = 5_000;
    // The program alone takes 30 MB. Keep V8's young generation small, because it counts against the limit.
    const NODE_OPTIONS = '--max-old-space-size=36 --max-semi-space-size=2';
    const run = operatorProgramWith({ ...variablesOf(await open()), NODE_OPTIONS });
    const { counts } = await valueFrom(run, `import ${peopleOf(accounts)}`);
    expect(counts.accounts).to.include({ added: accounts });
    expect(counts.memberships).to.include({ added: 5 * accounts });
  });
});

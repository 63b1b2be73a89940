import { expect } from 'chai';
import { operatorOn, valueFrom } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { introspect } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, type TestService } from '../support/service.ts';
import { fileOf, type Line, line } from './import-file.ts';

const { account, membership, organization, rights, warehouse } = line;

onPostgresAndRedis('an import while a service is running', (start) => {
  const on = startSeeded({ on: start });
  let nodes: TestService[];
  let token: string;

  before(async () => {
    const { service, partner } = on;
    const isEmbedded = service.settings.storage.databaseUrl === undefined;
    nodes = isEmbedded ? [service] : [service, await start({ sharing: service })];
    ({ accessToken: token } = await partner.tokens(on.clients.confidential));
  });

  const PLACES = [organization('O1', 'Acme'), warehouse('W1', 'O1', { name: 'Riga' })];
  const people = (): Line[] => [
    account('A1', { email: on.seeded.person.email, name: on.seeded.person.name }),
    account('A2'),
    account('A3'),
  ];
  const OTHERS = [membership('A2', 'O1'), membership('A3', 'O1')];
  const importLines = (...lines: Line[]) =>
    valueFrom(operatorOn(on.service.database), `import ${fileOf(...PLACES, ...lines)} --prune --yes`);

  /** Introspects the token at each node until the check passes. */
  async function onEachNode(check: (answer: Record<string, unknown>) => void): Promise<void> {
    for (const { issuer } of nodes) {
      await eventually(async () => {
        const { body } = await introspect(issuer, on.clients.resourceServer, token);
        check(body);
      });
    }
  }
  const idsIn = ({ organizations = [] }: { organizations?: { external_id?: string }[] }) =>
    organizations.map(({ external_id }) => external_id);

  it('introspection shows the access that an import gives, with the external ids', async () => {
    await onEachNode((answer) => {
      expect(answer).to.not.have.property('external_id');
      expect(idsIn(answer)).to.deep.equal([undefined]);
    });
    const access = [membership('A1', 'O1'), rights('A1', 'W1', 'read')];
    await importLines(...people(), ...OTHERS, ...access);
    await onEachNode((answer) => {
      const { accountId: sub, email: username } = on.seeded.person;
      expect(answer).to.include({ active: true, sub, username, external_id: 'A1' });
      const [acme, byHand] = answer.organizations as Record<string, unknown>[];
      expect(acme).to.deep.include({ external_id: 'O1', name: 'Acme', role: 'member' });
      expect(acme?.warehouses).to.have.nested.property('[0].external_id', 'W1');
      expect(byHand).to.include({ name: on.seeded.organization.name });
      expect(JSON.stringify(byHand)).not.to.contain('external_id');
    });
  });

  it('an import removes access, and suspends accounts missing from the file, on every node', async () => {
    await importLines(...people(), ...OTHERS);
    await onEachNode((answer) => {
      expect(answer).to.include({ active: true, external_id: 'A1' });
      expect(idsIn(answer)).to.deep.equal([undefined]);
    });
    await importLines(...people().slice(1), ...OTHERS);
    await onEachNode((answer) => expect(answer).to.deep.equal({ active: false }));
  });
});

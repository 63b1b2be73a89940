/** What an operator prepares for the sandbox: its clients, and what Ada may reach. */
import type { Gatehouse } from './gatehouse.ts';

/** What a service with an embedded database seeds at its first start. */
export const DEMO = { email: 'ada@demo.test', password: 'gatehouse-demo' };

export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface Provisions {
  readonly partner: Credentials;
  readonly api: Credentials;
  readonly machine: Credentials;
  readonly organizationId: string;
}

export async function provision(
  { operator }: Pick<Gatehouse, 'operator'>,
  { redirectUri }: { readonly redirectUri: string },
): Promise<Provisions> {
  const add = async (kind: string, name: string, ...more: string[]): Promise<Credentials> => {
    const added = await operator('clients', 'add', '--kind', kind, '--name', name, ...more);
    return { clientId: String(added.client_id), clientSecret: String(added.client_secret) };
  };
  const [partner, api, machine, { organizations }] = await Promise.all([
    add('confidential', 'Stock Planner', '--redirect-uri', redirectUri),
    add('resource-server', 'Warehouse API'),
    add('machine', 'Night Count'),
    operator('memberships', 'list', '--account', DEMO.email),
  ]);
  const [demo] = organizations as Reached[];
  const [hamburg, riga] = demo?.warehouses ?? [];
  if (!demo || !hamburg || !riga) throw new Error('the demo has no organization with warehouses');

  // Rights that differ from warehouse to warehouse, so that there is something to be refused.
  const set = (who: readonly string[], role: string, { id }: Named, rights: string) =>
    operator(
      'memberships',
      'set',
      ...who,
      '--organization',
      demo.id,
      '--role',
      role,
      '--warehouse',
      id,
      '--rights',
      rights,
    );
  const ada = ['--account', DEMO.email];
  await set(ada, 'member', hamburg, 'read,write');
  await Promise.all([
    set(ada, 'member', riga, 'read'),
    set(['--client', machine.clientId], 'viewer', hamburg, 'read'),
  ]);
  return { partner, api, machine, organizationId: demo.id };
}

interface Named {
  readonly id: string;
  readonly name: string;
}

interface Reached extends Named {
  readonly warehouses: readonly Named[];
}

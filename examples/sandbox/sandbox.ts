/** Starts the sandbox in order: the service, its clients, the API, the partner app. */
import { createIntrospector, type Organization, type Warehouse } from '../../modules/node/src/resource-server.ts';
import { type Gatehouse, startGatehouse } from './gatehouse.ts';
import { availablePort } from './listening.ts';
import { type PartnerApp, startPartnerApp } from './partner-app.ts';
import { apiUrlAt, startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

export interface Sandbox {
  readonly gatehouse: Gatehouse;
  readonly provisions: Provisions;
  readonly partner: PartnerApp;
  readonly api: WarehouseApi;
  /** Ends service, API and partner app, and deletes the data of the service. */
  close(): Promise<void>;
}

/** These ports differ from the ports of `npm start`. They are fixed, so that old addresses in a browser still work. */
const PREFERRED_PORTS = { gatehouse: 4400, partner: 4401, api: 4402 };

/** @param parts.stop aborts the start, which then throws and leaves nothing behind. */
export async function startSandbox(
  parts: Pick<Parameters<typeof startGatehouse>[0], 'stop' | 'lookOf'>,
): Promise<Sandbox> {
  const closings: (() => Promise<void> | void)[] = [];
  async function close(): Promise<void> {
    for (const closing of closings.splice(0).reverse()) await closing();
  }
  try {
    const port = await availablePort(PREFERRED_PORTS.gatehouse, 'localhost');
    const apiPort = await availablePort(PREFERRED_PORTS.api, '127.0.0.1');
    const gatehouse = await startGatehouse({ port, apiUrl: apiUrlAt(apiPort), ...parts });
    closings.push(gatehouse.close);
    const { issuer } = gatehouse;

    const partnerPort = await availablePort(PREFERRED_PORTS.partner, '127.0.0.1');
    const redirectUri = `http://127.0.0.1:${partnerPort}/callback`;
    const provisions = await provision(gatehouse, { redirectUri });

    const introspector = createIntrospector({ issuer, ...provisions.api, live: true });
    closings.push(introspector.close);
    const api = await startWarehouseApi({ introspector, port: apiPort });
    closings.push(api.close);

    const registration = { issuer, redirectUri, ...provisions.partner };
    const partner = await startPartnerApp({ registration, apiUrl: api.url });
    closings.push(partner.close);
    return { gatehouse, provisions, partner, api, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The account of the demo data, which an embedded deployment creates at its first start. */
export const DEMO = { email: 'ada@demo.test', password: 'gatehouse-demo' };

export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

interface Provisions {
  readonly partner: Credentials;
  readonly api: Credentials;
  readonly machine: Credentials;
  readonly organizationId: string;
}

async function provision(
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
  const [demo] = organizations as Organization[];
  const [hamburg, riga] = demo?.warehouses ?? [];
  if (!demo || !hamburg || !riga) throw new Error('the demo has no organization with warehouses');

  // Rights differ between warehouses, so that some calls are refused.
  const set = (who: readonly string[], role: string, { id }: Warehouse, rights: string) => {
    const place = ['--organization', demo.id, '--role', role, '--warehouse', id];
    return operator('memberships', 'set', ...who, ...place, '--rights', rights);
  };
  const ada = ['--account', DEMO.email];
  await set(ada, 'member', hamburg, 'read,write');
  await Promise.all([set(ada, 'member', riga, 'read'), set(['--client', machine.clientId], 'viewer', hamburg, 'read')]);
  return { partner, api, machine, organizationId: demo.id };
}

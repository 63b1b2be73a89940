/** Everything of the sandbox, started in order: the service, its clients, the API, the partner app. */
import { createIntrospector } from '../resource-server/resource-server.ts';
import { type Gatehouse, startGatehouse } from './gatehouse.ts';
import { availablePort } from './listening.ts';
import { type PartnerApp, startPartnerApp } from './partner-app.ts';
import { type Provisions, provision } from './provisioning.ts';
import { apiUrlAt, startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

export interface Sandbox {
  readonly gatehouse: Gatehouse;
  readonly provisions: Provisions;
  readonly partner: PartnerApp;
  readonly api: WarehouseApi;
  /** Ends all three, and what the service kept. */
  close(): Promise<void>;
}

/** Beside a service that was started with `npm start`, and in a browser's history for next time. */
const PREFERRED = { gatehouse: 4400, partner: 4401, api: 4402 };

/** @param stop ends the start half-way: it throws then, with nothing left behind. */
export async function startSandbox({ stop }: { readonly stop: AbortSignal }): Promise<Sandbox> {
  const closings: (() => Promise<void> | void)[] = [];
  async function close(): Promise<void> {
    for (const closing of closings.splice(0).reverse()) await closing();
  }
  try {
    const port = await availablePort(PREFERRED.gatehouse, 'localhost');
    const apiPort = await availablePort(PREFERRED.api, '127.0.0.1');
    const gatehouse = await startGatehouse({ port, apiUrl: apiUrlAt(apiPort), stop });
    closings.push(gatehouse.close);
    const { issuer } = gatehouse;

    const partnerPort = await availablePort(PREFERRED.partner, '127.0.0.1');
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

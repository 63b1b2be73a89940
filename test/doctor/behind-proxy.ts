/** Nodes behind a reverse proxy, and the environment for a doctor that examines them. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { NodeAddress } from '../many-nodes/running-node.ts';
import { keysOf, storesOf } from '../operator/run-operator.ts';
import type { createOpened } from '../support/opened.ts';
import { freePort } from '../support/programs.ts';
import { type Overrides, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

type Opened = ReturnType<typeof createOpened>;

/** Starts a node whose issuer is the address of the proxy. */
export async function nodeBehind(
  opened: Opened,
  issuer: string,
  options: {
    proxyHops?: number;
    sharing?: TestService;
    settings?: Overrides;
    /** The address of the node; default: free ports of 127.0.0.1. */
    address?: NodeAddress;
  } = {},
): Promise<TestService> {
  const { proxyHops = 1, sharing, settings: changes = {}, address } = options;
  const at = address ? { ...address, operatorsHost: address.host } : { port: await freePort() };
  const server = { ...at, proxyHops };
  const settings = { ...changes, issuer, isLoopback: true, server };
  return opened.add(
    startTestService({ deployment: 'postgres+redis', settings, ...(sharing && { sharing }) }),
    (service) => service.close(),
  );
}

export function environmentOf(
  service: TestService,
  proxyHops = service.settings.server.proxyHops,
): Record<string, string> {
  const file = path.join(temporaryDirectory('doctor'), 'gatehouse.yaml');
  const { requireGraceSeconds: grace } = service.settings.signIn;
  const lines = [`server: { proxy_hops: ${proxyHops} }`, `sign_in: { require_grace: ${grace}s }`];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return {
    GATEHOUSE_CONFIG: file,
    GATEHOUSE_ISSUER: service.issuer,
    ...storesOf(service),
    ...keysOf(service),
  };
}

/**
 * Runs work with an additional trusted certificate, like NODE_EXTRA_CA_CERTS, which Node reads only
 * at its start.
 */
export async function trusting<Result>(authority: string, work: () => Promise<Result>): Promise<Result> {
  const before = getCACertificates();
  setDefaultCACertificates([...before, readFileSync(authority, 'utf8')]);
  try {
    return await work();
  } finally {
    setDefaultCACertificates(before);
  }
}

/** `npm run sandbox -- [settings file]`: starts all programs on one machine. Needs the dev dependencies. */
import { DEMO, type Sandbox, startSandbox } from './sandbox.ts';

const stop = new AbortController();
const stopped = new Promise<undefined>((resolve) => {
  stop.signal.addEventListener('abort', () => resolve(undefined));
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop.abort());

process.stdout.write('Starting a service, a partner app and a warehouse API …\n');
try {
  const sandbox = await startSandbox({ stop: stop.signal, lookOf: process.argv[2] });
  process.stdout.write(instructions(sandbox));
  const lastWords = await Promise.race([stopped, sandbox.gatehouse.ended]);
  await sandbox.close();
  // Ignore that the service ends after Ctrl-C, because it also receives the signal, perhaps earlier.
  if (!stop.signal.aborted) throw new Error(`Gatehouse stopped unexpectedly:\n${lastWords}`);
} catch (error) {
  if (!stop.signal.aborted) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  }
}

function instructions({ gatehouse, provisions, partner, api }: Sandbox): string {
  const { issuer, settingsFile } = gatehouse;
  const { machine, organizationId } = provisions;
  const operator = `GATEHOUSE_CONFIG=${settingsFile} npm run operator --`;
  const whose = `--account ${DEMO.email} --organization ${organizationId}`;
  const credentials = `-u ${machine.clientId}:${machine.clientSecret}`;
  return `
  Partner app     ${partner.origin}
  Gatehouse       ${issuer}   sign in as ${DEMO.email}, password ${DEMO.password}
  Warehouse API   ${api.url.href}

1. Open the partner app, connect, and show the stock. Hamburg may be adjusted, Riga only read.
   Refresh, retry the old refresh token, and read the requests and answers on the page.

   Watch the stock, and revoke in another tab: the subscription ends at once. The page
   ${new URL('/', api.url).href} shows whether each call was decided from memory or by asking Gatehouse.

2. In another terminal, remove the membership, and show the stock again: it has disappeared.

   ${operator} memberships remove ${whose}

   Add it again, this time with every right:

   ${operator} memberships set ${whose} --role owner

3. Call the same API as a machine client, or with an API key from ${issuer}/profile/api-keys
   instead of its token:

   TOKEN=$(curl -s ${credentials} -d grant_type=client_credentials ${issuer}/oauth/token |
     sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
   curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
     -d '{"query":"{ caller { method } organizations { name warehouses { name rights } } }"}' \\
     ${api.url.href}

4. Connect an app of your own: create a client at ${issuer}/profile/oauth-clients/new.
   Its page Connect has programs to copy that query the same API.

Ctrl-C stops all three and deletes their data.
`;
}

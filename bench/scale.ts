/** Writes many authorizations with the service's own code, and measures a service on them. */
import { besideKoa, type Comparison, comparisonTable, PARTS } from './beside-koa.ts';
import { connectPeople } from './connected-people.ts';
import { type DeploymentKind, prepareDeployment, startBareKoa } from './deployment.ts';
import { type Conversation, measure } from './load.ts';
import { onIdleCore, PINNING, residentMemory } from './processor.ts';
import { table } from './table.ts';
import { introspectionOf, refreshOf } from './token-requests.ts';

/** As many people as a node caches by default. */
const MAX_PEOPLE = 100_000;
/** The share of a closed loop's rate at which requests arrive in the second table. */
const SHARE = 0.5;

/** @param scale the number of authorizations, and the seconds of each line of a table */
export async function measureScale(scale: {
  readonly kind: DeploymentKind;
  readonly authorizations: number;
  readonly seconds: number;
}): Promise<void> {
  const { kind, authorizations, seconds } = scale;
  const deployment = await prepareDeployment(kind);
  const { confidential: client, resourceServer } = deployment.seed.clients;
  const people = Math.min(authorizations, MAX_PEOPLE);
  const began = performance.now();
  const written = await onIdleCore(() => connectPeople(deployment, client, people, authorizations));
  const took = (performance.now() - began) / 1_000;
  // An embedded database belongs to one process at a time.
  await written.close();

  const service = await deployment.start();
  const koa = await startBareKoa();
  const { tokens } = written;
  const refreshTokens = [...written.refreshTokens];
  // In a fixed order, all people would leave the cache together, a minute after the first round.
  const any = (): number => Math.floor(Math.random() * tokens.length);
  const kinds: Record<string, () => Conversation> = {
    introspection: () => ({
      next: () => introspectionOf(resourceServer, tokens[any()] ?? ''),
    }),
    // Two connections may send one refresh token at the same time: the second gets the answer of a retry.
    refresh: () => {
      let at = 0;
      return {
        next() {
          at = any();
          return refreshOf(client, refreshTokens[at] ?? '');
        },
        answered({ body }) {
          refreshTokens[at] = (JSON.parse(body) as Record<string, string>).refresh_token ?? '';
        },
      };
    },
  };
  const closed: [string, Comparison][] = [];
  const open: string[][] = [];
  for (const [kind, converse] of Object.entries(kinds)) {
    const load = () => measure(deployment.issuer, { seconds: seconds / PARTS }, converse);
    closed.push([kind, await besideKoa(koa, service, load)]);
  }
  for (const [kind, converse] of Object.entries(kinds)) {
    // Each person is read again once a minute, so the first minute is slower than all others.
    const { requestsPerSecond } = await measure(deployment.issuer, { seconds }, converse);
    const perSecond = requestsPerSecond * SHARE;
    const found = await measure(deployment.issuer, { seconds, perSecond }, converse);
    const { p50, p99, p999, longest, failures } = found;
    const times = [p50, p99, p999, longest].map((time) => time.toFixed(1));
    open.push([kind, text(perSecond), ...times, residentMemory(service.pid).toFixed(0), text(failures)]);
  }
  await koa.stop();
  await service.stop();

  console.log(`${text(authorizations)} authorizations of ${text(people)} people, written in ${took.toFixed(1)} s, ${text(authorizations / took)} a second.
The service was ready ${service.secondsUntilReady.toFixed(1)} s after its start. ${text(tokens.length)} of the authorizations, one of each person, were used.
${PINNING}
`);
  console.log(comparisonTable(kind, closed));
  console.log(`
Requests arrive at half the rate of a closed loop of ${seconds} s before; each time counts from the planned moment.
${table(['open loop', '1/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'longest ms', 'MB', 'failed'], open)}`);
}

const text = (value: number): string => Math.round(value).toLocaleString('en');

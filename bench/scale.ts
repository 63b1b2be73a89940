/** Writes many authorizations with the service's own code, and measures a service on them. */
import { besideKoa, type Comparison, comparisonTable, PARTS } from './beside-koa.ts';
import { connectPeople } from './connected-people.ts';
import { type DeploymentKind, prepareDeployment, startBareKoa } from './deployment.ts';
import { type Conversation, measure } from './load.ts';
import { onIdleCore, PINNING } from './processor.ts';
import { introspectionOf, refreshOf } from './token-requests.ts';

const AUTHORIZATIONS_PER_PERSON = 100;
/** Only these are introspected and refreshed: this process keeps the tokens of no more. */
const MAX_SAMPLED = 10_000;

/** @param scale the number of authorizations, and the seconds of each line of the table */
export async function measureScale(scale: {
  readonly kind: DeploymentKind;
  readonly authorizations: number;
  readonly seconds: number;
}): Promise<void> {
  const { kind, authorizations, seconds } = scale;
  const deployment = await prepareDeployment(kind);
  const { confidential: client, resourceServer } = deployment.seed.clients;
  const people = Math.ceil(authorizations / AUTHORIZATIONS_PER_PERSON);
  const sampleEvery = Math.ceil(authorizations / MAX_SAMPLED);
  const began = performance.now();
  const written = await onIdleCore(() => connectPeople(deployment, client, people, { authorizations, sampleEvery }));
  const took = (performance.now() - began) / 1_000;
  // An embedded database belongs to one process at a time.
  await written.close();

  const service = await deployment.start();
  const koa = await startBareKoa();
  const { tokens } = written;
  const refreshTokens = [...written.refreshTokens];
  const load = (converse: () => Conversation): Promise<Comparison> =>
    besideKoa(koa, service, () => measure(deployment.issuer, { seconds: seconds / PARTS }, converse));
  let introspected = 0;
  const introspection = await load(() => ({
    next: () => introspectionOf(resourceServer, tokens[introspected++ % tokens.length] ?? ''),
  }));
  // Each connection takes the next authorization, so that no refresh token is sent twice at the same time.
  const refresh = await load(() => ({
    next: () => refreshOf(client, refreshTokens.shift() ?? ''),
    answered({ body }) {
      refreshTokens.push((JSON.parse(body) as Record<string, string>).refresh_token ?? '');
    },
  }));
  await koa.stop();
  await service.stop();

  const text = (value: number): string => Math.round(value).toLocaleString('en');
  console.log(`${text(authorizations)} authorizations of ${text(people)} people, written in ${took.toFixed(1)} s, ${text(authorizations / took)} a second.
The service was ready ${service.secondsUntilReady.toFixed(1)} s after its start. ${text(tokens.length)} of the authorizations were used.
${PINNING}
`);
  const rows = [['introspection', introspection] as const, ['refresh', refresh] as const];
  console.log(comparisonTable(kind, rows));
}

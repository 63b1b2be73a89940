/** Ends all that acts for a person, all issued to a client, or what a backup has brought back. */
import type { Action } from '../../accounts/activity/activity-words.ts';
import { BATCH } from '../../authorizations/connections.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import { accountNamed, clientNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { clientRecord, type Registries } from '../registries.ts';

/** Ends all that acts for a person: for an account that an attacker has got into. */
export async function revokeAccount(
  registries: Registries,
  name: string,
  { confirm }: Operator,
): Promise<Report> {
  const { accounts, apiKeys, passwordLinks, recordChange } = registries;
  const { id, email } = await accountNamed(registries, name);
  const { length: keys } = await apiKeys.listOf(id);
  const connected = await registries.connections.listOf(id);
  await confirm(
    `Ends ${connected.length} connections, ${keys} API keys and every browser session of ${email}.`,
  );
  // End the sessions first: with one of them an attacker could connect a client again meanwhile.
  const signedOut = recordChange('signed_out_everywhere', { accountId: id });
  await accounts.endSessions(id, async (tx) => {
    await passwordLinks.forget(id, tx);
    await signedOut(tx);
  });
  let revokedKeys = 0;
  // List the keys again: the operator may have taken long to confirm.
  for (const key of await apiKeys.listOf(id))
    if (await apiKeys.revoke(id, key.id)) revokedKeys += 1;
  const ended = await registries.disconnect({ accountId: id });
  return {
    value: {
      account_id: id,
      email,
      connections: ended.length,
      api_keys: revokedKeys,
      browser_sessions_ended: true,
    },
    text: [
      `Ended for ${email}:`,
      `  connections      ${ended.length}, with all their authorizations`,
      `  API keys         ${revokedKeys}`,
      '  browser sessions all, and the links to set a password',
      'The password is as it was. Where somebody else may know it, `accounts suspend` keeps everybody',
      'out, and after `accounts resume` the link of `accounts invite` sets another one.',
    ].join('\n'),
  };
}

/**
 * Ends all that was issued to a client, which stays as it is and may get new tokens. A client with
 * many connections is suspended meanwhile: all its tokens are refused at once, and the rows follow.
 */
export async function revokeClient(
  registries: Registries,
  clientId: string,
  operator: Operator,
): Promise<Report> {
  const { confirm, progress } = operator;
  const client = await clientNamed(registries, clientId);
  if (client.kind === 'resource-server') throw withoutTokens(client);
  if (client.kind === 'machine') return revokeMachine(registries, client, operator);
  const people = await registries.connections.countOf(clientId);
  const { name } = client;
  await confirm(`Ends the connections of ${people} people to ${name}.`);
  const isSuspendedMeanwhile = people > BATCH && !client.isSuspended;
  const record = (action: Action, details = {}) =>
    clientRecord(registries, action, client, details);
  if (isSuspendedMeanwhile) await registries.clients.suspend(clientId, record('client_suspended'));
  let count = 0;
  for (let isLast = false, after: string | undefined; !isLast; ) {
    const ended = await registries.disconnectSome(clientId, after, async (tx, some) => {
      isLast = some.length < BATCH;
      if (isLast) await record('client_tokens_revoked', { people: count + some.length })(tx);
    });
    after = ended.at(-1)?.accountId;
    count += ended.length;
    progress.show('Connections ended', count, people);
  }
  if (isSuspendedMeanwhile) await registries.clients.resume(clientId, record('client_resumed'));
  return {
    value: { client_id: clientId, connections: count, suspended: client.isSuspended },
    text: [
      `Ended the connections of ${count} people to ${name}, with all their authorizations.`,
      client.isSuspended
        ? `It is suspended, as it was before: \`clients resume ${clientId}\` lets it in again, and then each is asked.`
        : 'Each is asked before the client gets another one.',
    ].join(' '),
  };
}

/** Needs no list of tokens: each carries the generation in which it was issued. */
async function revokeMachine(
  registries: Registries,
  client: Client,
  { confirm }: Operator,
): Promise<Report> {
  await confirm(`Ends every access token of the machine client ${client.name}.`);
  await registries.clients.endMachineTokens(
    client.id,
    clientRecord(registries, 'client_tokens_revoked', client, {}),
  );
  return {
    value: { client_id: client.id, machine_tokens_ended: true },
    text:
      `Ended every access token of ${client.name}. With its secret it gets another one: ` +
      '`clients suspend` keeps it out.',
  };
}

const withoutTokens = ({ name }: Client): Refusal =>
  new Refusal(
    'client_without_tokens',
    `${name} is a resource server: nothing is issued to it.`,
    '`clients suspend` refuses its questions; `clients rotate-secret` gives it another secret.',
  );

/** Repeats every recorded end of an authorization: after an older token store was restored. */
export async function revokeRecorded(
  registries: Registries,
  since: Date | undefined,
  { progress }: Operator,
): Promise<Report> {
  const endings = await registries.endings();
  const total = await registries.revocations.countSince(since);
  const { looked, ended } = await endings.repeatRecorded(since, (count) =>
    progress.show('Recorded ends looked at', count, total),
  );
  return {
    value: { recorded: looked, ended },
    text: `Of ${looked} authorizations that are recorded as ended ${ended} were alive. They are ended.`,
  };
}

/**
 * Ends every authorization and every machine access token: after an older PostgreSQL was restored,
 * which does not know the connections that ended since. Approvals stay: people are not asked again.
 */
export async function revokeAll(
  registries: Registries,
  { confirm, progress }: Operator,
): Promise<Report> {
  await confirm('Ends every authorization of everybody, and every machine access token.');
  const { clients, connections, database, recordChange } = registries;
  await database.transaction((tx) => clients.endEveryMachineToken(tx));
  const count = await connections.endEveryAuthorization((done) =>
    progress.show('Connections whose authorizations ended', done),
  );
  await recordChange('everything_revoked', {})(database);
  return {
    value: { connections: count },
    text:
      `Ended the authorizations of all ${count} connections, and every machine access token. The ` +
      'clients must send their people through the authorization again; who approved before is not asked again.',
  };
}

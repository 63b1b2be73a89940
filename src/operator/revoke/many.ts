/** Ends all access of a person or a client, or of everyone after the restore of an old backup. */
import { BATCH } from '../../authorizations/connections.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import { MAX_PEOPLE, peopleText } from '../../clients/client-row.ts';
import { accountNamed, clientNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { clientRecord, type Registries } from '../registries.ts';

/** Ends a person's sessions, connections and API keys, for an account that an attacker has used. */
export async function revokeAccount(registries: Registries, name: string, { confirm }: Operator): Promise<Report> {
  const { accounts, apiKeys, passwordLinks, recordChange } = registries;
  const { id, email } = await accountNamed(registries, name);
  const { length: keys } = await apiKeys.listOf(id);
  const connected = await registries.connections.listOf(id);
  await confirm(`Ends ${connected.length} connections, ${keys} API keys and every browser session of ${email}.`);
  // End the sessions first, because an attacker with a session could connect another client in between.
  const signedOut = recordChange('signed_out_everywhere', { accountId: id });
  await accounts.endSessions(id, async (tx) => {
    await passwordLinks.forget(id, tx);
    await signedOut(tx);
  });
  let revokedKeys = 0;
  // List the API keys again, because a key may have been added while the operator was asked.
  for (const key of await apiKeys.listOf(id)) if (await apiKeys.revoke(id, key.id)) revokedKeys += 1;
  const ended = await registries.disconnect({ accountId: id });
  return {
    value: { account_id: id, email, connections: ended.length, api_keys: revokedKeys, browser_sessions_ended: true },
    text: [
      `Ended for ${email}:`,
      `  connections      ${ended.length}, with all their authorizations`,
      `  API keys         ${revokedKeys}`,
      '  browser sessions all of them, and the one-time links to set a password',
      'The password is unchanged. If another person may know it, suspend the account with `accounts suspend`,',
      'then run `accounts resume`, and let the person set a new password with the link of `accounts invite`.',
    ].join('\n'),
  };
}

/**
 * Ends everything that was issued to a client; the client can get new tokens. Everything is refused at once, and then
 * the rows of the connections are changed in batches. After an interruption, the command can be run again.
 */
export async function revokeClient(registries: Registries, clientId: string, operator: Operator): Promise<Report> {
  const { confirm, progress } = operator;
  const client = await clientNamed(registries, clientId);
  if (client.kind === 'resource-server') throw withoutTokens(client);
  if (client.kind === 'machine') return revokeMachine(registries, client, operator);
  // Count also the connections that an earlier, interrupted command has not marked as ended.
  const people = await registries.connections.countOf(clientId, 'unmarked');
  const { name } = client;
  await confirm(`Ends the connections of ${peopleText(people)} people to ${name}.`);
  const record = clientRecord(registries, 'client_tokens_revoked', client, { people: peopleText(people) });
  const isContinued = await registries.clients.revoke(clientId, record);
  let count = 0;
  for (let isLast = false, after: string | undefined; !isLast; ) {
    const ended = await registries.disconnectSome(clientId, after, async (tx, some) => {
      isLast = some.length < BATCH;
      if (isLast) await registries.clients.finishRevocation(clientId, tx);
    });
    after = ended.at(-1)?.accountId;
    count += ended.length;
    progress.show('Connections ended', count, isContinued || people > MAX_PEOPLE ? undefined : people);
  }
  return {
    value: { client_id: clientId, connections: count, continued: isContinued, suspended: client.isSuspended },
    text: [
      `Ended the connections of ${count} people to ${name}, with all their authorizations.`,
      ...(isContinued ? [CONTINUED] : []),
      client.isSuspended
        ? `The client remains suspended. After \`clients resume ${clientId}\` each person must approve it again.`
        : 'Each person must approve the client again.',
    ].join(' '),
  };
}

const CONTINUED =
  'This completed an earlier command that was interrupted: people who have approved the client again since that ' +
  'command stay connected. Run the command again to end their connections as well.';

/** Raises the generation of the client: every token contains the generation in which it was issued. */
async function revokeMachine(registries: Registries, client: Client, { confirm }: Operator): Promise<Report> {
  await confirm(`Ends every access token of the machine client ${client.name}.`);
  await registries.clients.revoke(client.id, clientRecord(registries, 'client_tokens_revoked', client, {}));
  return {
    value: { client_id: client.id, machine_tokens_ended: true },
    text:
      `Ended every access token of ${client.name}. It can get new ones with its secret, ` +
      'unless you suspend it with `clients suspend`.',
  };
}

const withoutTokens = ({ name }: Client): Refusal =>
  new Refusal(
    'client_without_tokens',
    `${name} is a resource server: it has no tokens to revoke.`,
    '`clients suspend` refuses its introspection requests; `clients rotate-secret` creates another secret.',
  );

/**
 * Ends every authorization and every machine access token, because a restored, older PostgreSQL lacks the latest
 * revocations. The approvals stay, so people are not asked for consent again.
 */
export async function revokeAll(registries: Registries, { confirm, progress }: Operator): Promise<Report> {
  await confirm('Ends every authorization of all people, and every machine access token.');
  const { clients, connections, database, recordChange } = registries;
  await database.transaction((tx) => clients.endEveryMachineToken(tx));
  const count = await connections.endEveryAuthorization((done) =>
    progress.show('Connections whose authorizations ended', done),
  );
  await recordChange('everything_revoked', {})(database);
  return {
    value: { connections: count },
    text:
      `Ended the authorizations of all ${count} connections, and every machine access token. The clients must send ` +
      'their people through the authorization again; people who have approved a client are not asked again.',
  };
}

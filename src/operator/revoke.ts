/** `operator revoke`: ends the access of a person, a client or a token on every node at once. */
import { type Command, Option } from 'commander';
import { BATCH } from '../authorizations/connections.ts';
import { readValue } from '../authorizations/token-formats.ts';
import { FORMS, type ValueKind } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { shapeOf } from '../base/value-faults.ts';
import type { Client } from '../clients/client.ts';
import { MAX_PEOPLE, peopleText } from '../clients/client-row.ts';
import { readToken, STANDARD_INPUT_IS_SAFER, WrongUsage } from './command/arguments.ts';
import { addYesOption } from './command/confirmation.ts';
import { accountNamed, clientNamed } from './command/names.ts';
import type { Operator, Report } from './command/operator.ts';
import { clientRecord, type Registries } from './registries.ts';

interface RevokeOptions {
  readonly account?: string;
  readonly client?: string;
  readonly token?: string;
  readonly all?: true;
}

const WHAT = ['account', 'client', 'token', 'all'];

/** Creates an option that conflicts with every other option in `WHAT`. */
function what(flags: string, description: string): Option {
  const option = new Option(flags, description);
  return option.conflicts(WHAT.filter((other) => other !== option.attributeName()));
}

export function addRevokeCommand(program: Command, operator: Operator): void {
  const { run } = operator;
  addYesOption(program.command('revoke'))
    .description('revoke the access of a person, a client or one token, at once and on every node')
    .addOption(
      what('--account <account>', 'of a person: connections, API keys, browser sessions, links to set the password'),
    )
    .addOption(
      what('--client <id>', 'all tokens of a client: every connection to it, or all tokens of a machine client'),
    )
    .addOption(
      what('--token <token>', 'one token or code with its whole authorization, or one API key; - for standard input'),
    )
    .addOption(what('--all', 'every authorization of all people: after an older PostgreSQL was restored'))
    .addHelpText(
      'after',
      '\n--account, --client and --all ask for confirmation, or need --yes. They change ' +
        'neither the account nor\nthe client: people may connect again. `accounts suspend` ' +
        `or \`clients suspend\` prevents that.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async ({ account, client, token, all }: RevokeOptions) => {
      const value = token === undefined ? undefined : await readToken(token, operator);
      if (value !== undefined) return run((registries) => revokeToken(registries, value));
      if (account !== undefined) return run((registries) => revokeAccount(registries, account, operator));
      if (client !== undefined) return run((registries) => revokeClient(registries, client, operator));
      if (all) return run((registries) => revokeAll(registries, operator));
      throw new WrongUsage('choose what to revoke: --account, --client, --token or --all');
    });
}

/** Ends a person's sessions, connections and API keys, for an account that an attacker has used. */
async function revokeAccount(registries: Registries, name: string, { confirm }: Operator): Promise<Report> {
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
async function revokeClient(registries: Registries, clientId: string, operator: Operator): Promise<Report> {
  const { confirm, progress } = operator;
  const client = await clientNamed(registries, clientId);
  if (client.kind === 'resource-server') throw withoutTokens(client);
  if (client.kind === 'machine') return revokeMachine(registries, client, operator);
  // If an earlier command was interrupted, some ended connections are not yet marked as ended: count these, too.
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
 * Ends every authorization and every machine access token, because a restored backup of PostgreSQL lacks the latest
 * revocations. The approvals stay, so people are not asked for consent again.
 */
async function revokeAll(registries: Registries, { confirm, progress }: Operator): Promise<Report> {
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

/** Revokes one token, together with its authorization if it has one. */
async function revokeToken(registries: Registries, value: string): Promise<Report> {
  const { kind, faults } = shapeOf(value);
  if (kind === undefined || faults.length > 0) throw malformed(faults);
  return REVOKE[kind](registries, value);
}

const REVOKE: Readonly<Record<ValueKind, (registries: Registries, value: string) => Promise<Report>>> = {
  access_token: (registries, value) => endAuthorization(registries, 'access_token', value),
  refresh_token: (registries, value) => endAuthorization(registries, 'refresh_token', value),
  code: (registries, value) => endAuthorization(registries, 'code', value),
  machine_token: endMachineToken,
  api_key: endApiKey,
  client_secret: () => Promise.reject(notAToken('client_secret')),
  client_id: () => Promise.reject(notAToken('client_id')),
};

/** Ends the authorization of any token, even of a replaced one. Verifies no MAC, because operators are trusted. */
async function endAuthorization(registries: Registries, kind: ValueKind, value: string): Promise<Report> {
  const id = readValue(value)?.authorizationId;
  const store = await registries.tokenStore();
  const record = id === undefined ? undefined : await store.readAuthorization(id);
  // Also check the recorded revocations: a token store restored from a backup may still have a revoked authorization.
  const ended = id === undefined ? undefined : await registries.revocations.find(id);
  if (id === undefined || !record || ended) throw notActive(kind, ended?.at);
  const { accountId, clientId } = record;
  const account = await registries.accounts.find(accountId);
  const client = await registries.clients.find(clientId);
  const why = { cause: 'operator_revoked', actor: 'operator' } as const;
  await (await registries.endings()).end({ authorization: { id, ...record }, ...why });
  return {
    value: {
      kind,
      revoked: true,
      account_id: accountId,
      email: account?.email ?? null,
      client_id: clientId,
      client_name: client?.name ?? null,
    },
    text:
      `Ended the authorization of ${account?.email ?? accountId} for ${client?.name ?? clientId}: its access tokens, ` +
      'refresh tokens and code. Other authorizations of the same person and client are unchanged.',
  };
}

async function endMachineToken(registries: Registries, value: string): Promise<Report> {
  const machineTokens = await registries.machineTokens();
  const token = await machineTokens.find(value);
  if (!token) throw notActive('machine_token');
  const { clientId, expiresAt } = token;
  if (await registries.revocations.hasEndedToken({ machineToken: value, clientId })) throw notActive('machine_token');
  const client = await registries.clients.find(clientId);
  const endings = await registries.endings();
  const details = { client_id: clientId, ...(client && { client_name: client.name }), cause: 'operator_revoked' };
  const accountId = client?.ownerAccountId;
  const entry = { action: 'tokens_revoked', actor: 'operator', accountId, details } as const;
  await endings.end({ machineToken: value, clientId, expiresAt, entry });
  return {
    value: { kind: 'machine_token', revoked: true, client_id: clientId, client_name: client?.name ?? null },
    text: `Ended the access token of the machine client ${client?.name ?? clientId}.`,
  };
}

async function endApiKey({ accounts, apiKeys }: Registries, value: string): Promise<Report> {
  const key = await apiKeys.findKept(value);
  if (!key || !(await apiKeys.revoke(key.accountId, key.id))) throw notActive('api_key');
  const account = await accounts.find(key.accountId);
  return {
    value: {
      kind: 'api_key',
      revoked: true,
      account_id: key.accountId,
      email: account?.email ?? null,
      api_key_id: key.id,
      api_key_name: key.name,
    },
    text: `Revoked the API key “${key.name}” of ${account?.email ?? key.accountId}.`,
  };
}

const malformed = (faults: readonly string[]): Refusal =>
  new Refusal(
    'token_malformed',
    `The value ${faults.join('; it ')}: nothing was revoked.`,
    'Copy the whole value again.',
  );

const notAToken = (kind: ValueKind): Refusal =>
  new Refusal(
    'not_a_token',
    `This is a ${FORMS[kind].name}, not a token: nothing was revoked.`,
    '`revoke --client` ends all tokens of a client; `clients rotate-secret` and `remove-secret` replace a secret.',
  );

/** @param endedAt when the authorization of the token was ended, perhaps by an earlier run of this command */
const notActive = (kind: ValueKind, endedAt?: Date): Refusal =>
  new Refusal(
    'token_not_alive',
    `There is no active ${FORMS[kind].name} with this value: nothing was revoked.`,
    endedAt
      ? `Its authorization ended at ${endedAt.toISOString()}: see \`show\`.`
      : 'The token may have ended already: see `show`.',
  );

/** The text and the JSON that commands print about a client. */
import type { Client } from '../../clients/client.ts';
import type { Report } from '../command/operator.ts';
import { table } from '../command/report.ts';
import type { Registries } from '../registries.ts';

/** @param done the sentence that says what was done to the client */
export const clientReport = (client: Client, done: string): Report => ({
  value: clientValue(client),
  text: `${clientText(client)}\n${done}`,
});

/** Maximum number of problems in the text; the JSON has all problems. */
const SHOWN = 20;

/**
 * Reports the client and its problems of the last seven days. The latest problem is first, and equal problems are one
 * entry.
 */
export async function shownClient({ clientRequests }: Registries, client: Client): Promise<Report> {
  const problems = await clientRequests.groups(client.id);
  const heading = ['LAST', 'TIMES', 'REQUEST REFUSED', 'CAUSE', 'REQUEST'];
  const rows = problems
    .slice(0, SHOWN)
    .map(({ at, count, step, error, isMended, cause, requestId }) => [
      at.toISOString(),
      `${count}`,
      `${step}: ${error}${isMended ? ' (mended)' : ''}`,
      cause,
      requestId,
    ]);
  return {
    value: {
      ...clientValue(client),
      problems: problems.map(({ at, first, count, step, error, cause, isMended, ...sent }) => ({
        last_at: at,
        first_at: first,
        count,
        step,
        error,
        cause,
        redirect_uri: sent.redirectUri,
        scope: sent.scope,
        auth_method: sent.authMethod,
        mended: isMended,
        request_id: sent.requestId,
      })),
    },
    text: [clientText(client), '', table(heading, rows, 'No request was refused in the last 7 days.')].join('\n'),
  };
}

const line = (label: string, value: string): string => `${label.padEnd(13)} ${value}`;

export const stateOf = ({ isSuspended }: Client): string => (isSuspended ? 'suspended' : 'active');

function clientText(client: Client): string {
  const lines = [
    ['Client ID', client.id],
    ['Name', client.name],
    ['Kind', client.isNative ? `${client.kind}, native` : client.kind],
    ['Owner', client.ownerName ?? 'provided by the operator'],
    ['State', stateOf(client)],
    ['Verified', client.verifiedAt?.toISOString() ?? 'no'],
    ...(client.alwaysAsks ? [['Approval', `asked for each request, set by the ${askedBy(client)}`]] : []),
    ['Created', client.createdAt.toISOString()],
    ...(client.renewedAt ? [['Renewed', client.renewedAt.toISOString()]] : []),
    ...(client.endingSince ? [['Ending', `since ${client.endingSince.toISOString()}: ${UNFINISHED}`]] : []),
    ...client.redirectUris.map((uri) => ['Redirect URI', uri]),
    ...Object.entries(client.links).map(([kind, url]) => [`${kind[0]?.toUpperCase()}${kind.slice(1)}`, url]),
    ...client.secrets.map(({ lastFour, createdAt, lastUsedAt, leakedAt }) => [
      'Secret',
      `…${lastFour}, created ${createdAt.toISOString()}, ` +
        (lastUsedAt ? `last used ${lastUsedAt.toISOString()}` : 'never used') +
        (leakedAt ? `, found in public ${leakedAt.toISOString()}` : ''),
    ]),
  ];
  return lines.map(([label = '', value = '']) => line(label, value)).join('\n');
}

const askedBy = ({ asksForOperator }: Client): 'operator' | 'owner' => (asksForOperator ? 'operator' : 'owner');

const UNFINISHED = 'if no `revoke --client` is running, run it again to finish it';

/** Leaves out the hashes of the client's secrets. */
export const clientValue = (client: Client) => ({
  id: client.id,
  client_id: client.id,
  kind: client.kind,
  name: client.name,
  owner_account_id: client.ownerAccountId ?? null,
  owner_name: client.ownerName ?? null,
  redirect_uris: client.redirectUris,
  native: client.isNative,
  suspended: client.isSuspended,
  verified: client.isVerified,
  verified_at: client.verifiedAt ?? null,
  links: client.links,
  always_ask: client.alwaysAsks,
  always_ask_by: client.alwaysAsks ? askedBy(client) : null,
  created_at: client.createdAt,
  renewed_at: client.renewedAt ?? null,
  ending_since: client.endingSince ?? null,
  secrets: client.secrets.map(({ id, lastFour, createdAt, lastUsedAt, leakedAt, refusedAt }) => ({
    id,
    last_four: lastFour,
    created_at: createdAt,
    last_used_at: lastUsedAt ?? null,
    leaked_at: leakedAt ?? null,
    refused_at: refusedAt ?? null,
  })),
});
